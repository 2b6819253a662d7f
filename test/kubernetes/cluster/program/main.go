// Command cluster is the parts of a one-node Kubernetes in one program, for tests: API server, scheduler, kubelet.
// They are the project's own, unchanged; the first argument says which.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var parts = map[string]func() *cobra.Command{
	"kube-apiserver": apiserver.NewAPIServerCommand,
	"kube-scheduler": func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":        func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
}

func main() {
	if len(os.Args) < 2 || parts[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: cluster kube-apiserver|kube-scheduler|kubelet …")
		os.Exit(64)
	}
	part := parts[os.Args[1]]()
	os.Args = os.Args[1:]
	os.Exit(cli.Run(part))
}

// Command pod-helper is what the Kubernetes backend has inside each of its pods: one static program without
// dependencies, so that it runs in any image. It knows nothing of tasks, trials or models.
//
//	close  init container with NET_ADMIN: takes every way out of the pod's network, puts a copy of this program where
//	       the sandbox finds it, and ends before any other container begins
//	idle   first process of a container: reaps, and does nothing else
//	serve  one request of the manager over standard input and output: a command, or something done with files
//	relay  a listener on the pod's loopback whose connections are carried over standard input and output
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) < 2 {
		fail("usage: pod-helper close [copy] | idle | serve | relay port")
	}
	switch os.Args[1] {
	case "close":
		closeNetwork(os.Args[2:])
	case "idle":
		idle()
	case "serve":
		serve()
	case "relay":
		relay(os.Args[2:])
	default:
		fail("no such part: " + os.Args[1])
	}
}

func fail(message string) {
	fmt.Fprintln(os.Stderr, "pod-helper: "+message)
	os.Exit(1)
}

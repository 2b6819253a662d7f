package main

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"runtime"
	"strings"
	"sync"
	"syscall"
)

// run runs one command to its end. It has ended when its first process has: what it started is then killed, also what
// gave up its parent, session or group, for this process is the next parent of all of it.
func run(asked request, in *frameReader, out *frameWriter) result {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prctlSetSubreaper, 1, 0); errno != 0 {
		return result{Refused: "subreaper: " + errno.Error()}
	}
	program, err := programOf(asked)
	if err != nil {
		return result{Refused: err.Error()}
	}
	streams, err := newStreams(asked.HasStdin)
	if err != nil {
		return result{Refused: err.Error()}
	}
	pid, err := startLocked(asked, program, streams)
	streams.closeInner()
	if err != nil {
		return result{Refused: fmt.Sprintf("%s: %v", asked.Argv[0], err)}
	}
	// The command dies before we do when memory runs out.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0)
	out.sendJSON(kindBegun, result{Counters: counters()})
	var copying sync.WaitGroup
	copying.Add(2)
	go streams.copy(streams.stdout, out.stream(kindOutput), &copying)
	go streams.copy(streams.stderr, out.stream(kindErrors), &copying)
	go follow(in, streams)
	status := waitFor(pid)
	killDescendants()
	copying.Wait()
	ended := result{Counters: counters()}
	if status.Signaled() {
		ended.Signal = int(status.Signal())
	} else {
		ended.Code = status.ExitStatus()
	}
	return ended
}

// follow hands standard input on and obeys; when the manager is gone, so is the command.
func follow(in *frameReader, streams *streams) {
	for {
		got, err := in.next()
		switch {
		case err != nil:
			killDescendants()
			os.Exit(1)
		case got.kind == kindData:
			streams.feed(got.bytes)
		case got.kind == kindEnd:
			streams.feed(nil)
		case got.kind == kindKill:
			killDescendants()
		}
	}
}

func startLocked(asked request, program string, streams *streams) (int, error) {
	type started struct {
		pid int
		err error
	}
	done := make(chan started)
	go func() {
		// Never unlocked: the thread ends with its privileges as they are.
		runtime.LockOSThread()
		pid, err := start(asked.Argv, program, &syscall.ProcAttr{
			Dir:   asked.Cwd,
			Env:   asked.Environment,
			Files: streams.inner(),
			Sys: &syscall.SysProcAttr{
				Setsid:     true,
				Credential: &syscall.Credential{Uid: asked.User, Gid: asked.User, Groups: []uint32{}},
			},
		})
		done <- started{pid, err}
	}()
	ended := <-done
	return ended.pid, ended.err
}

// programOf finds a program as a shell would, with the command's own PATH.
func programOf(asked request) (string, error) {
	if len(asked.Argv) == 0 || asked.Argv[0] == "" {
		return "", fmt.Errorf("no program is named")
	}
	name := asked.Argv[0]
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, pair := range asked.Environment {
		directories, isPath := strings.CutPrefix(pair, "PATH=")
		if !isPath {
			continue
		}
		for _, directory := range strings.Split(directories, ":") {
			candidate := path.Join(directory, name)
			status, err := os.Stat(candidate)
			if err == nil && status.Mode().IsRegular() && status.Mode()&0o111 != 0 {
				return candidate, nil
			}
		}
	}
	return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
}

func waitFor(pid int) syscall.WaitStatus {
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		if ended == pid {
			return status
		}
		if err != nil && err != syscall.EINTR {
			fail("wait: " + err.Error())
		}
	}
}

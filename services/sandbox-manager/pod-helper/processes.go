package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	killPasses   = 500
	killPause    = 10 * time.Millisecond
	firstProcess = 1
	// Of our own, so that none has to be made while there may be no room for one.
	standByThreads = 4
	threadPause    = 20 * time.Millisecond
)

var killing sync.Mutex

// killDescendants ends everything below this process. Each pass first stops what it found, so that little can be
// started meanwhile, and a later pass finds what was. What has ended is reaped by the first process when we end.
func killDescendants() {
	killing.Lock()
	defer killing.Unlock()
	for range killPasses {
		found := descendants(os.Getpid())
		if len(found) == 0 {
			return
		}
		for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
			for _, pid := range found {
				_ = syscall.Kill(pid, signal)
			}
		}
		time.Sleep(time.Millisecond)
	}
}

// killEverything leaves the first process and this one. The kernel signals all of them in one go, under a lock that
// no fork gets past.
func killEverything() error {
	for range killPasses {
		err := syscall.Kill(-1, syscall.SIGKILL)
		if err != nil && err != syscall.ESRCH {
			return err
		}
		left := others()
		if len(left) == 0 {
			return nil
		}
		time.Sleep(killPause)
	}
	return errors.New("processes are left that do not end")
}

// standBy waits for the word, holding all that is needed then: whoever has used up the processes of the pod, or ends
// whatever begins in it, comes too late. Without a manager there is nothing to wait for.
func standBy(in *frameReader) {
	var ready sync.WaitGroup
	for range standByThreads {
		ready.Add(1)
		go func() {
			// The runtime keeps the thread that this needs.
			_ = syscall.Nanosleep(&syscall.Timespec{Nsec: int64(threadPause)}, nil)
			ready.Done()
		}()
	}
	ready.Wait()
	for {
		got, err := in.next()
		if err != nil {
			os.Exit(0)
		}
		if got.kind == kindEnd {
			return
		}
	}
}

// others are the processes that live, but the first and this one.
func others() []int {
	found := []int{}
	for pid := range parents() {
		if pid != firstProcess && pid != os.Getpid() {
			found = append(found, pid)
		}
	}
	return found
}

func descendants(root int) []int {
	known := parents()
	found := []int{}
	for pid := range known {
		for at, hops := pid, 0; at > firstProcess && hops < len(known); at, hops = known[at], hops+1 {
			if known[at] == root {
				found = append(found, pid)
				break
			}
		}
	}
	return found
}

// parents by process; those that have ended and only wait to be reaped are left out.
func parents() map[int]int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		fail(err.Error())
	}
	found := map[int]int{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		state, parent := statOf(pid)
		if state != 0 && state != 'Z' && state != 'X' {
			found[pid] = parent
		}
	}
	return found
}

func statOf(pid int) (state byte, parent int) {
	bytes, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	// The name in parentheses may hold anything.
	text := string(bytes)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return 0, 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return fields[0][0], parent
}

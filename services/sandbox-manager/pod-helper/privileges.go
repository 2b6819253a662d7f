package main

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"unsafe"
)

const (
	prctlSetSubreaper  = 36
	prctlDropBounding  = 24
	prctlSetSecurebits = 28
	noSetuidFixup      = 1 << 2
	lastCapability     = 63
	capabilityVersion3 = 0x20080522
	capSetgid          = 6
	capSetuid          = 7
	// ownUser is nobody's in any image: root inside, which is as powerless as anybody, must not be able to end us.
	ownUser = 65531
)

type capabilityHeader struct {
	version uint32
	pid     int32
}

type capabilityData struct{ effective, permitted, inheritable uint32 }

// becomeOwn gives every thread a user of its own and keeps its capabilities.
func becomeOwn() {
	if _, _, errno := syscall.AllThreadsSyscall(syscall.SYS_PRCTL, prctlSetSecurebits, noSetuidFixup, 0); errno != 0 {
		fail("securebits: " + errno.Error())
	}
	if err := syscall.Setresgid(ownUser, ownUser, ownUser); err != nil {
		fail("setresgid: " + err.Error())
	}
	if err := syscall.Setresuid(ownUser, ownUser, ownUser); err != nil {
		fail("setresuid: " + err.Error())
	}
}

// start runs a program as a user without any capability, now or by whatever it executes later. It must be called on
// a locked thread that is never used for anything else.
func start(argv []string, path string, attributes *syscall.ProcAttr) (int, error) {
	for capability := uintptr(0); capability <= lastCapability; capability++ {
		_, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prctlDropBounding, capability, 0)
		if errno == syscall.EINVAL {
			break
		}
		if errno != 0 {
			return 0, errno
		}
	}
	// The kernel's own rules again: exec leaves nothing to any user but root, and to root what the bounding set has.
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prctlSetSecurebits, 0, 0); errno != 0 {
		return 0, errno
	}
	if err := keepOnly(1<<capSetgid | 1<<capSetuid); err != nil {
		return 0, err
	}
	return syscall.ForkExec(path, argv, attributes)
}

func keepOnly(set uint32) error {
	header := capabilityHeader{version: capabilityVersion3}
	data := [2]capabilityData{{effective: set, permitted: set}, {}}
	_, _, errno := syscall.RawSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// idle is the first process of its namespace: the kernel lets no signal from inside end it unless it asks for it.
func idle() {
	runtime.LockOSThread()
	signal.Ignore()
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	if os.Getuid() == 0 {
		becomeOwn()
	}
	for {
		select {
		case <-ended:
			// Only the container runtime may: what is inside has another user.
			os.Exit(0)
		case <-children:
			for {
				pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
				if pid <= 0 || err != nil {
					break
				}
			}
		}
	}
}

package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"
)

const (
	ioctlGetFlags = 0x8913
	ioctlSetFlags = 0x8914
	flagUp        = 1
)

type interfaceRequest struct {
	name  [16]byte
	flags uint16
	_     [22]byte
}

// closeNetwork takes every interface but loopback down, which also takes its routes; nobody who comes after this
// container has the capability to bring one up again.
func closeNetwork(copyTo []string) {
	for _, name := range interfaces() {
		if err := setFlag(name, name == "lo"); err != nil {
			fail(fmt.Sprintf("interface %s: %v", name, err))
		}
	}
	for _, name := range interfacesUp() {
		if name != "lo" {
			fail(fmt.Sprintf("interface %s is still up", name))
		}
	}
	for _, target := range copyTo {
		if err := copyProgram(target); err != nil {
			fail(err.Error())
		}
	}
}

func interfaces() []string {
	found, err := net.Interfaces()
	if err != nil {
		fail(err.Error())
	}
	names := []string{}
	for _, one := range found {
		names = append(names, one.Name)
	}
	return names
}

func interfacesUp() []string {
	up := []string{}
	for _, name := range interfaces() {
		request, err := flagsOf(name)
		if err != nil || request.flags&flagUp != 0 {
			up = append(up, name)
		}
	}
	return up
}

func flagsOf(name string) (interfaceRequest, error) {
	var request interfaceRequest
	copy(request.name[:15], name)
	return request, interfaceCall(ioctlGetFlags, &request)
}

func setFlag(name string, isUp bool) error {
	request, err := flagsOf(name)
	if err != nil {
		return err
	}
	request.flags &^= flagUp
	if isUp {
		request.flags |= flagUp
	}
	return interfaceCall(ioctlSetFlags, &request)
}

func interfaceCall(call uintptr, request *interfaceRequest) error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), call, uintptr(unsafe.Pointer(request)))
	if errno != 0 {
		return errno
	}
	return nil
}

func copyProgram(target string) error {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o555)
	if err != nil {
		return err
	}
	if _, err := io.Copy(to, from); err != nil {
		return err
	}
	return to.Close()
}

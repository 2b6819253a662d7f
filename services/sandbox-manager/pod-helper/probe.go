package main

import (
	"encoding/hex"
	"errors"
	"net"
	"syscall"
	"time"
)

// target is one place to be tried: an address with a port, or an abstract Unix socket.
type target struct {
	Host     string `json:"host"`
	Port     int    `json:"port"`
	Abstract string `json:"abstract"`
	Protocol string `json:"protocol"`
	// Hexadecimal, sent as one datagram over UDP.
	Datagram string `json:"datagram"`
}

// What is still undecided after this has left the pod.
const probePatience = 400 * time.Millisecond

// probe begins every attempt at once and says what the kernel said: connected, pending, sent, or the name of an error.
func probe(targets []target) result {
	states := make([]string, len(targets))
	done := make(chan struct{}, len(targets))
	for at, one := range targets {
		go func() {
			states[at] = attempt(one)
			done <- struct{}{}
		}()
	}
	for range targets {
		<-done
	}
	return result{States: states, Interfaces: interfacesUp()}
}

func attempt(to target) string {
	address, family, err := addressOf(to)
	if err != nil {
		return err.Error()
	}
	kind := syscall.SOCK_STREAM
	if to.Protocol == "udp" {
		kind = syscall.SOCK_DGRAM
	}
	fd, err := syscall.Socket(family, kind|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nameOf(err)
	}
	defer syscall.Close(fd)
	if to.Protocol == "udp" {
		return sendTo(fd, address, to.Datagram)
	}
	return connect(fd, address)
}

func sendTo(fd int, address syscall.Sockaddr, datagram string) string {
	if err := syscall.Connect(fd, address); err != nil {
		return nameOf(err)
	}
	bytes, err := hex.DecodeString(datagram)
	if err != nil {
		return err.Error()
	}
	if _, err := syscall.Write(fd, bytes); err != nil {
		return nameOf(err)
	}
	return "sent"
}

// A connect that is repeated answers for the one before.
func connect(fd int, address syscall.Sockaddr) string {
	for deadline := time.Now().Add(probePatience); ; time.Sleep(5 * time.Millisecond) {
		switch err := syscall.Connect(fd, address); {
		case err == nil || errors.Is(err, syscall.EISCONN):
			return "connected"
		case !errors.Is(err, syscall.EINPROGRESS) && !errors.Is(err, syscall.EALREADY):
			return nameOf(err)
		case time.Now().After(deadline):
			return "pending"
		}
	}
}

func addressOf(to target) (syscall.Sockaddr, int, error) {
	if to.Abstract != "" {
		return &syscall.SockaddrUnix{Name: "@" + to.Abstract}, syscall.AF_UNIX, nil
	}
	address := net.ParseIP(to.Host)
	if v4 := address.To4(); v4 != nil {
		made := &syscall.SockaddrInet4{Port: to.Port}
		copy(made.Addr[:], v4)
		return made, syscall.AF_INET, nil
	}
	if address == nil {
		return nil, 0, errors.New("no address: " + to.Host)
	}
	made := &syscall.SockaddrInet6{Port: to.Port}
	copy(made.Addr[:], address)
	return made, syscall.AF_INET6, nil
}

var errorNames = map[syscall.Errno]string{
	syscall.ENETUNREACH:   "ENETUNREACH",
	syscall.EHOSTUNREACH:  "EHOSTUNREACH",
	syscall.ENETDOWN:      "ENETDOWN",
	syscall.EADDRNOTAVAIL: "EADDRNOTAVAIL",
	syscall.EAFNOSUPPORT:  "EAFNOSUPPORT",
	syscall.EACCES:        "EACCES",
	syscall.EPERM:         "EPERM",
	syscall.ECONNREFUSED:  "ECONNREFUSED",
	syscall.ECONNRESET:    "ECONNRESET",
	syscall.ETIMEDOUT:     "ETIMEDOUT",
}

func nameOf(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		if name, ok := errorNames[errno]; ok {
			return name
		}
	}
	return err.Error()
}

package main

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
)

// Bytes of one connection that may be on their way unread, in each direction: one that nobody reads must not hold up
// the others, nor fill memory.
const window = 256 * 1024
const maxConnections = 64

// relay listens on the pod's loopback and carries every connection over standard input and output. It ends, and all
// connections with it, when the manager does.
func relay(arguments []string) {
	if len(arguments) != 1 {
		fail("relay needs a port")
	}
	if _, err := strconv.ParseUint(arguments[0], 10, 16); err != nil {
		fail(err.Error())
	}
	in, out := newFrameReader(os.Stdin), newFrameWriter(os.Stdout)
	listener, err := net.Listen("tcp4", "127.0.0.1:"+arguments[0])
	if err != nil {
		out.sendJSON(kindResult, result{Error: err.Error()})
		os.Exit(1)
	}
	out.sendJSON(kindBegun, result{})
	carried := &connections{out: out, open: map[uint32]*carried{}}
	go carried.accept(listener)
	for {
		got, err := in.next()
		if err != nil {
			os.Exit(0)
		}
		carried.take(got)
	}
}

type connections struct {
	out  *frameWriter
	mu   sync.Mutex
	open map[uint32]*carried
	last uint32
}

func (c *connections) accept(listener net.Listener) {
	for {
		socket, err := listener.Accept()
		if err != nil {
			fail(err.Error())
		}
		number, one := c.add(socket.(*net.TCPConn))
		if one == nil {
			socket.Close()
			continue
		}
		c.out.send(kindOpened, number, nil)
		go c.outwards(number, one)
		go c.inwards(number, one)
	}
}

func (c *connections) add(socket *net.TCPConn) (uint32, *carried) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) >= maxConnections {
		return 0, nil
	}
	c.last++
	one := newCarried(socket)
	c.open[c.last] = one
	return c.last, one
}

func (c *connections) take(got frame) {
	c.mu.Lock()
	one := c.open[got.number]
	c.mu.Unlock()
	if one == nil {
		return
	}
	switch got.kind {
	case kindData, kindEnd:
		one.push(got.kind == kindEnd, got.bytes)
	case kindCredit:
		one.give(int(binary.BigEndian.Uint32(got.bytes)))
	case kindKill:
		c.forget(got.number)
	}
}

// outwards reads what is inside and sends it, no more than the manager has room for.
func (c *connections) outwards(number uint32, one *carried) {
	buffer := make([]byte, maxFrame)
	for {
		room := one.await()
		if room == 0 {
			return
		}
		n, err := one.socket.Read(buffer[:min(room, maxFrame)])
		if n > 0 {
			one.give(-n)
			c.out.send(kindData, number, buffer[:n])
		}
		if err == io.EOF {
			c.out.send(kindEnd, number, nil)
			c.half(number, one)
			return
		}
		if err != nil {
			c.cut(number)
			return
		}
	}
}

// inwards writes what the manager sent and gives the room back.
func (c *connections) inwards(number uint32, one *carried) {
	for {
		bytes, isOpen := one.pop()
		if !isOpen {
			return
		}
		if bytes == nil {
			one.socket.CloseWrite()
			c.half(number, one)
			return
		}
		if _, err := one.socket.Write(bytes); err != nil {
			c.cut(number)
			return
		}
		var room [4]byte
		binary.BigEndian.PutUint32(room[:], uint32(len(bytes)))
		c.out.send(kindCredit, number, room[:])
	}
}

// half is called when one direction has ended; after both, there is nothing left to carry.
func (c *connections) half(number uint32, one *carried) {
	if one.halves() == 2 {
		c.forget(number)
	}
}

func (c *connections) cut(number uint32) {
	if c.forget(number) {
		c.out.send(kindKill, number, nil)
	}
}

func (c *connections) forget(number uint32) bool {
	c.mu.Lock()
	one := c.open[number]
	delete(c.open, number)
	c.mu.Unlock()
	if one == nil {
		return false
	}
	one.close()
	return true
}

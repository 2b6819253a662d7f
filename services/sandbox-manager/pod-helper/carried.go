package main

import (
	"net"
	"sync"
)

// carried is one connection: what still has to be written to it, and how much more of it may be sent. The manager
// keeps to its window, so what waits is never more than that.
type carried struct {
	socket  *net.TCPConn
	mu      sync.Mutex
	changed *sync.Cond
	waiting [][]byte
	isEnded bool
	room    int
	nHalves int
	isOver  bool
}

func newCarried(socket *net.TCPConn) *carried {
	one := &carried{socket: socket, room: window}
	one.changed = sync.NewCond(&one.mu)
	return one
}

func (c *carried) push(isEnd bool, bytes []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if isEnd {
		c.isEnded = true
	} else if len(bytes) > 0 {
		c.waiting = append(c.waiting, bytes)
	}
	c.changed.Broadcast()
}

// pop waits for bytes; nil is the end of them, and false the end of the connection.
func (c *carried) pop() ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.waiting) == 0 && !c.isEnded && !c.isOver {
		c.changed.Wait()
	}
	if c.isOver {
		return nil, false
	}
	if len(c.waiting) == 0 {
		return nil, true
	}
	first := c.waiting[0]
	c.waiting = c.waiting[1:]
	return first, true
}

func (c *carried) give(bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.room += bytes
	c.changed.Broadcast()
}

// await waits for room; 0 is the end of the connection.
func (c *carried) await() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.room <= 0 && !c.isOver {
		c.changed.Wait()
	}
	if c.isOver {
		return 0
	}
	return c.room
}

func (c *carried) halves() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nHalves++
	return c.nHalves
}

func (c *carried) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isOver = true
	c.socket.Close()
	c.changed.Broadcast()
}

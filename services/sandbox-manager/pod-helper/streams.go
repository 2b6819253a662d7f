package main

import (
	"io"
	"os"
	"sync"
)

// streams are a command's standard streams: its own ends, and ours.
type streams struct {
	stdin          io.WriteCloser
	stdout, stderr *os.File
	own            []*os.File
	// What standard input still has to take. Whoever does not read it must not keep us from being told to kill it.
	waiting chan []byte
}

const maxWaiting = 4096

func newStreams(hasStdin bool) (*streams, error) {
	made := &streams{waiting: make(chan []byte, maxWaiting)}
	input, err := os.Open(os.DevNull)
	if hasStdin {
		var writer *os.File
		input, writer, err = os.Pipe()
		made.stdin = writer
	}
	if err != nil {
		return nil, err
	}
	stdout, innerOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	stderr, innerErr, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	made.stdout, made.stderr = stdout, stderr
	made.own = []*os.File{input, innerOut, innerErr}
	go made.write()
	return made, nil
}

func (s *streams) inner() []uintptr {
	return []uintptr{s.own[0].Fd(), s.own[1].Fd(), s.own[2].Fd()}
}

func (s *streams) closeInner() {
	for _, file := range s.own {
		file.Close()
	}
}

// feed gives standard input bytes, or its end with none.
func (s *streams) feed(bytes []byte) { s.waiting <- bytes }

func (s *streams) write() {
	for bytes := range s.waiting {
		if s.stdin == nil {
			continue
		}
		if bytes == nil {
			s.stdin.Close()
			s.stdin = nil
			continue
		}
		// Whoever closed it wants no more of it.
		_, _ = s.stdin.Write(bytes)
	}
}

func (s *streams) copy(from io.Reader, to io.Writer, done *sync.WaitGroup) {
	defer done.Done()
	_, _ = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, maxFrame))
}

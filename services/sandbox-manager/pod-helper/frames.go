package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// A frame is a kind (1 byte), a number (4, big-endian; a connection's, else 0), a length (4) and so many bytes.
// backend/kubernetes/frames.ts is the other end.
const (
	kindRequest = 1 // JSON, the first frame
	kindData    = 2 // standard input, output of a connection
	kindEnd     = 3 // nothing more of it comes
	kindKill    = 4 // end the command, or cut the connection
	kindCredit  = 5 // 4 bytes: so much more of a connection may be sent
	kindOutput  = 10
	kindErrors  = 11
	kindBegun   = 12
	kindResult  = 13 // JSON, the last frame
	kindAlive   = 14 // nothing, so that no proxy on the way takes the stream for dead
	kindOpened  = 15 // a connection was accepted
)

const (
	headerBytes  = 9
	maxFrame     = 64 * 1024
	maxRequest   = 16 * 1024 * 1024
	aliveSeconds = 20
)

type frame struct {
	kind   byte
	number uint32
	bytes  []byte
}

type frameReader struct{ from *bufio.Reader }

func newFrameReader(from io.Reader) *frameReader {
	return &frameReader{bufio.NewReaderSize(from, 2*maxFrame)}
}

func (r *frameReader) next() (frame, error) {
	var header [headerBytes]byte
	if _, err := io.ReadFull(r.from, header[:]); err != nil {
		return frame{}, err
	}
	size := binary.BigEndian.Uint32(header[5:])
	if size > maxRequest {
		return frame{}, errors.New("frame too long")
	}
	bytes := make([]byte, size)
	_, err := io.ReadFull(r.from, bytes)
	return frame{header[0], binary.BigEndian.Uint32(header[1:5]), bytes}, err
}

// frameWriter may be used from several goroutines.
type frameWriter struct {
	to io.Writer
	mu sync.Mutex
}

func newFrameWriter(to io.Writer) *frameWriter {
	writer := &frameWriter{to: to}
	go func() {
		for range time.Tick(aliveSeconds * time.Second) {
			writer.send(kindAlive, 0, nil)
		}
	}()
	return writer
}

// send ends the program when nobody reads any more.
func (w *frameWriter) send(kind byte, number uint32, bytes []byte) {
	out := make([]byte, headerBytes, headerBytes+len(bytes))
	out[0] = kind
	binary.BigEndian.PutUint32(out[1:5], number)
	binary.BigEndian.PutUint32(out[5:], uint32(len(bytes)))
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.to.Write(append(out, bytes...)); err != nil {
		os.Exit(1)
	}
}

func (w *frameWriter) sendJSON(kind byte, value any) {
	bytes, err := json.Marshal(value)
	if err != nil {
		fail(err.Error())
	}
	w.send(kind, 0, bytes)
}

// stream makes frames of one kind of what is written.
func (w *frameWriter) stream(kind byte) io.Writer { return streamWriter{w, kind} }

type streamWriter struct {
	to   *frameWriter
	kind byte
}

func (s streamWriter) Write(bytes []byte) (int, error) {
	for at := 0; at < len(bytes); at += maxFrame {
		s.to.send(s.kind, 0, bytes[at:min(at+maxFrame, len(bytes))])
	}
	return len(bytes), nil
}

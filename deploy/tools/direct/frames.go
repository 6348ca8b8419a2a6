package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

// A frame is a type (1 byte), a length (3 bytes), the number of a channel (4 bytes) and as many bytes as the length says;
// numbers are big-endian. The gateway numbers channels upwards and uses no number twice. Each side may send as many bytes
// of a stream as the other one allows: at first the windows below, then what credit frames add.
const (
	headerBytes = 8
	// What the gateway may send to a program, and what it takes of each output at first. The gateway has the same numbers.
	inputWindow  = 1024 * 1024
	outputWindow = 256 * 1024
	maxFrame     = 4 * 1024 * 1024
	// The gateway sends a ping every 20 seconds.
	silence = 60 * time.Second
)

// What the gateway sends.
const (
	frameOpen   = 1 // JSON: see openRequest
	frameInput  = 2
	frameEnd    = 3 // the input has ended
	frameCredit = 4 // stream (1 byte: 1 stdout, 2 stderr), bytes (4)
	frameResize = 5 // columns (2), rows (2)
	frameSignal = 6 // number (1)
	frameClose  = 7
	framePing   = 8
)

// What this program sends.
const (
	frameOpened      = 16 // pid of the program (4), 0 for a connection
	frameFailed      = 17 // why, as text; the channel is over
	frameStdout      = 18
	frameStderr      = 19
	frameOutputEnd   = 20 // the other side of a connection has ended its half
	frameInputCredit = 21 // bytes (4)
	frameDeaf        = 22 // nobody reads the input any more
	frameExit        = 23 // status (4); the channel is over
	framePong        = 24
)

var errProtocol = errors.New("the gateway broke the protocol")

// link is the connection to the gateway, and the channels on it.
type link struct {
	conn *gatewayConn
	// It opens ports of the loopback, and nothing else.
	onlyPorts bool
	mu        sync.Mutex
	channels  map[uint32]*channel
}

func newLink(conn *gatewayConn, onlyPorts bool) *link {
	return &link{conn: conn, onlyPorts: onlyPorts, channels: map[uint32]*channel{}}
}

// send writes one frame.
func (l *link) send(kind byte, id uint32, payload []byte) error {
	frame := make([]byte, headerBytes+len(payload))
	copy(frame[headerBytes:], payload)
	return l.sendFrame(kind, id, frame)
}

// sendFrame writes a frame whose first bytes are room for the header.
func (l *link) sendFrame(kind byte, id uint32, frame []byte) error {
	binary.BigEndian.PutUint32(frame, uint32(kind)<<24|uint32(len(frame)-headerBytes))
	binary.BigEndian.PutUint32(frame[4:], id)
	return l.conn.writeFrame(frame)
}

func (l *link) sendNumber(kind byte, id uint32, number uint32) error {
	return l.send(kind, id, binary.BigEndian.AppendUint32(nil, number))
}

// serve reads frames until the connection ends, then ends what runs.
func (l *link) serve() {
	l.send(framePong, 0, nil)
	l.readFrames()
	l.conn.Close()
	l.mu.Lock()
	left := slices.Collect(maps.Values(l.channels))
	l.mu.Unlock()
	var endings sync.WaitGroup
	for _, each := range left {
		endings.Go(each.abandon)
	}
	endings.Wait()
}

func (l *link) readFrames() error {
	from := bufio.NewReaderSize(l.conn, 64*1024)
	header := make([]byte, headerBytes)
	for {
		l.conn.SetReadDeadline(time.Now().Add(silence))
		if _, err := io.ReadFull(from, header); err != nil {
			return err
		}
		word := binary.BigEndian.Uint32(header)
		kind, length, id := byte(word>>24), int(word&0xffffff), binary.BigEndian.Uint32(header[4:])
		if length > maxFrame {
			return errProtocol
		}
		payload := make([]byte, length)
		if _, err := io.ReadFull(from, payload); err != nil {
			return err
		}
		if err := l.take(kind, id, payload); err != nil {
			return err
		}
	}
}

func (l *link) take(kind byte, id uint32, payload []byte) error {
	switch kind {
	case framePing:
		return l.send(framePong, 0, nil)
	case frameOpen:
		l.open(id, payload)
		return nil
	}
	l.mu.Lock()
	on := l.channels[id]
	l.mu.Unlock()
	if on == nil {
		// It has ended meanwhile.
		return nil
	}
	return on.take(kind, payload)
}

// forget takes a channel off the link once its last frame was sent.
func (l *link) forget(id uint32) {
	l.mu.Lock()
	delete(l.channels, id)
	l.mu.Unlock()
}

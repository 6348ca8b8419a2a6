package main

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// openRequest says what a channel is joined to: a program, or a connection.
type openRequest struct {
	// Argv and the bytes that the program finds on its descriptor 3.
	Argv     []string  `json:"argv"`
	Script   string    `json:"script"`
	Terminal *terminal `json:"terminal"`
	// As net.Dial takes them.
	Network string `json:"network"`
	Address string `json:"address"`
	// Of the loopback.
	Port uint16 `json:"port"`
}

type terminal struct {
	Columns uint16 `json:"columns"`
	Rows    uint16 `json:"rows"`
}

// credit is how many bytes of an output the gateway takes.
type credit struct {
	mu   sync.Mutex
	more *sync.Cond
	left int
	over bool
}

func newCredit() *credit {
	c := &credit{left: outputWindow}
	c.more = sync.NewCond(&c.mu)
	return c
}

// await answers how many bytes may be sent: at least one, or 0 when nobody takes them any more.
func (c *credit) await() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.left <= 0 && !c.over {
		c.more.Wait()
	}
	if c.over {
		return 0
	}
	return c.left
}

func (c *credit) add(bytes int) {
	c.mu.Lock()
	c.left += bytes
	c.mu.Unlock()
	c.more.Signal()
}

func (c *credit) end() {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.more.Signal()
}

// inbox holds what the gateway sent and the program has not taken yet: at most one inputWindow.
type inbox struct {
	mu    sync.Mutex
	more  *sync.Cond
	parts [][]byte
	bytes int
	ended bool
	// Something came since this was last looked at.
	isFresh atomic.Bool
}

func newInbox() *inbox {
	b := &inbox{}
	b.more = sync.NewCond(&b.mu)
	return b
}

// put answers whether the gateway kept to the window.
func (b *inbox) put(part []byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes += len(part)
	b.parts = append(b.parts, part)
	b.isFresh.Store(true)
	b.more.Signal()
	return b.bytes <= inputWindow
}

func (b *inbox) end() {
	b.mu.Lock()
	b.ended = true
	b.mu.Unlock()
	b.more.Signal()
}

// next answers the next part, nil at the end.
func (b *inbox) next() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.parts) == 0 && !b.ended {
		b.more.Wait()
	}
	if len(b.parts) == 0 {
		return nil
	}
	part := b.parts[0]
	b.parts = b.parts[1:]
	return part
}

func (b *inbox) taken(bytes int) {
	b.mu.Lock()
	b.bytes -= bytes
	b.mu.Unlock()
}

// peer is what a channel is joined to.
type peer interface {
	// resize and signal have no effect on a connection.
	resize(columns, rows uint16)
	signal(number syscall.Signal)
	// abandon ends it: the gateway is gone, or wants no more of it. It returns when that is done, after seconds at most.
	// A program that was told to live on then does.
	abandon()
}

type channel struct {
	id     uint32
	link   *link
	in     *inbox
	stdout *credit
	stderr *credit
	// Closed when the channel is over.
	over chan struct{}
	mu   sync.Mutex
	peer peer
	// The gateway wants no more of it.
	abandoned bool
}

func (l *link) open(id uint32, payload []byte) {
	on := &channel{
		id: id, link: l, in: newInbox(), stdout: newCredit(), stderr: newCredit(), over: make(chan struct{}),
	}
	l.mu.Lock()
	l.channels[id] = on
	l.mu.Unlock()
	go func() {
		defer close(on.over)
		defer l.forget(id)
		var request openRequest
		err := json.Unmarshal(payload, &request)
		switch {
		case err != nil:
		case request.Port != 0:
			err = on.runConnection(func() (net.Conn, error) { return dialPort(request.Port) })
		case l.onlyPorts:
			err = errOnlyPorts
		case request.Network != "":
			dialer := net.Dialer{Timeout: dialTime}
			err = on.runConnection(func() (net.Conn, error) { return dialer.Dial(request.Network, request.Address) })
		default:
			err = on.runProgram(request)
		}
		if err != nil {
			l.send(frameFailed, id, []byte(err.Error()))
		}
	}()
}

// join gives the channel its peer, and answers whether it is still wanted.
func (c *channel) join(to peer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.peer = to
	return !c.abandoned
}

func (c *channel) joined() peer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.peer
}

func (c *channel) abandon() {
	c.mu.Lock()
	c.abandoned = true
	to := c.peer
	c.mu.Unlock()
	c.in.end()
	c.stdout.end()
	c.stderr.end()
	if to != nil {
		to.abandon()
	}
}

func (c *channel) take(kind byte, payload []byte) error {
	switch {
	case kind == frameInput:
		if !c.in.put(payload) {
			return errProtocol
		}
	case kind == frameEnd:
		c.in.end()
	case kind == frameCredit && len(payload) == 5:
		of := c.stdout
		if payload[0] == 2 {
			of = c.stderr
		}
		of.add(int(binary.BigEndian.Uint32(payload[1:])))
	case kind == frameResize && len(payload) == 4:
		if to := c.joined(); to != nil {
			to.resize(binary.BigEndian.Uint16(payload), binary.BigEndian.Uint16(payload[2:]))
		}
	case kind == frameSignal && len(payload) == 1:
		if to := c.joined(); to != nil {
			to.signal(syscall.Signal(payload[0]))
		}
	case kind == frameClose:
		go c.abandon()
	default:
		return errProtocol
	}
	return nil
}

// passInput writes what the gateway sends, and lets it send as much again once that is a good part of its window: each
// frame wakes the gateway. It goes on when nobody reads any more: the bytes are dropped.
func (c *channel) passInput(to io.Writer) {
	isDeaf := false
	taken := 0
	for {
		part := c.in.next()
		if part == nil {
			return
		}
		if !isDeaf {
			if _, err := to.Write(part); err != nil {
				isDeaf = true
				c.link.send(frameDeaf, c.id, nil)
			}
		}
		taken += len(part)
		if taken < inputWindow/4 {
			continue
		}
		c.in.taken(taken)
		c.link.sendNumber(frameInputCredit, c.id, uint32(taken))
		taken = 0
	}
}

// Bytes of a frame with output, and of its header.
const (
	// Four full records of TLS.
	firstFrame = 64 * 1024
	// Of an output that fills the first one: what its pipe holds. The gateway is woken less often.
	largestFrame = 256 * 1024
)

// Many programs write some KiB at a time. Each frame costs both sides as much as 16 KiB of its bytes, and each read wakes
// this process: so after a small piece that came soon after the one before it, more of them may gather in the pipe. A
// piece after something came in may be the answer that the other side waits for: sftp and rsync take turns so.
const (
	smallPiece = 16 * 1024
	soon       = 2 * time.Millisecond
	gatherTime = 200 * time.Microsecond
)

// passOutput sends what it reads, as far as the gateway takes it, to the end.
func (c *channel) passOutput(kind byte, from io.Reader, allowed *credit) {
	frame := make([]byte, firstFrame)
	var last time.Time
	for {
		room := min(allowed.await(), len(frame)-headerBytes)
		if room == 0 {
			return
		}
		count, err := from.Read(frame[headerBytes : headerBytes+room])
		now := time.Now()
		answers := c.in.isFresh.Swap(false)
		flows := count < smallPiece && now.Sub(last) < soon && !answers
		last = now
		isFull := count == len(frame)-headerBytes
		if count > 0 {
			allowed.add(-count)
			if c.link.sendFrame(kind, c.id, frame[:headerBytes+count]) != nil {
				return
			}
		}
		if err != nil {
			return
		}
		if isFull && len(frame) == firstFrame {
			frame = make([]byte, largestFrame)
		}
		if flows {
			time.Sleep(gatherTime)
		}
	}
}

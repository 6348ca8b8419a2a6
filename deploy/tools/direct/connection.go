package main

import (
	"encoding/binary"
	"net"
	"sync"
	"syscall"
	"time"
)

const (
	dialTime = 10 * time.Second
	// How long a connection may take to send what is left when the gateway wants no more of it.
	linger = 3 * time.Second
)

type halfCloser interface {
	CloseWrite() error
}

// outgoing is a connection to where a forward goes.
type outgoing struct {
	conn net.Conn
	over <-chan struct{}
}

func (o *outgoing) resize(uint16, uint16) {}

func (o *outgoing) signal(syscall.Signal) {}

func (o *outgoing) abandon() {
	select {
	case <-o.over:
	case <-time.After(linger):
	}
	o.conn.Close()
}

// runConnection dials, and joins the channel to the connection until both halves have ended. It returns an error only when
// there is no connection.
func (c *channel) runConnection(dial func() (net.Conn, error)) error {
	conn, err := dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	to := &outgoing{conn: conn, over: c.over}
	c.link.send(frameOpened, c.id, binary.BigEndian.AppendUint32(nil, 0))
	if !c.join(to) {
		return nil
	}
	var halves sync.WaitGroup
	halves.Go(func() {
		c.passInput(conn)
		conn.(halfCloser).CloseWrite()
	})
	halves.Go(func() {
		c.passOutput(frameStdout, conn, c.stdout)
		c.link.send(frameOutputEnd, c.id, nil)
	})
	halves.Wait()
	c.link.sendNumber(frameExit, c.id, 0)
	return nil
}

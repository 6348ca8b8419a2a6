package main

import (
	"errors"
	"net"
	"strconv"
	"syscall"
	"time"
)

const (
	// Each replica of the api role has one.
	maxLinks = 64
	// How long a gateway may take from its line to its connection.
	openTime = 15 * time.Second
)

var errOnlyPorts = errors.New("this helper opens ports of its instance, and nothing else")

// servePorts gives a link to everybody who sends a line to this port of the loopback: a process of the instance, or
// somebody whom the API server lets forward to it. Such a link opens ports of the loopback, which both reach anyway. It
// starts no program: who may forward to a pod may not run programs there.
func servePorts(port string) error {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return err
	}
	places := make(chan struct{}, maxLinks)
	for {
		stream, err := listener.Accept()
		if err != nil {
			return err
		}
		select {
		case places <- struct{}{}:
			go func() {
				servePortsOf(stream)
				<-places
			}()
		default:
			stream.Close()
		}
	}
}

func servePortsOf(stream net.Conn) {
	defer stream.Close()
	stream.SetDeadline(time.Now().Add(openTime))
	conn, err := connection(stream, stream)
	if err != nil {
		sayWhy(stream, err)
		return
	}
	stream.Close()
	newLink(conn, true).serve()
}

// dialPort connects to a port of the loopback, as the kubelet does. The error is that of the system, without the address.
func dialPort(port uint16) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTime}
	number := strconv.Itoa(int(port))
	conn, err := dialer.Dial("tcp4", net.JoinHostPort("127.0.0.1", number))
	if err == nil {
		return conn, nil
	}
	if conn, err := dialer.Dial("tcp6", net.JoinHostPort("::1", number)); err == nil {
		return conn, nil
	}
	var reason syscall.Errno
	if errors.As(err, &reason) {
		return nil, reason
	}
	return nil, err
}

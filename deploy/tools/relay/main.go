// Command relay joins its stdin and stdout to one connection, as seen from inside the instance:
//
//	relay tcp localhost 8080
//	relay unix /path/to/socket
//
// Its first line on stdout is "ok" or "error: REASON". The end of stdin ends the sending half of the connection. The end
// of the receiving half is told on stderr as "eof COUNT", the number of bytes received, because an exec stream cannot
// carry the end of stdout before the end of the process; the process ends when both halves have.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

type halfCloser interface {
	CloseWrite() error
}

func dial(args []string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 10 * time.Second}
	switch {
	case len(args) == 3 && args[0] == "tcp":
		return dialer.Dial("tcp", net.JoinHostPort(args[1], args[2]))
	case len(args) == 2 && args[0] == "unix":
		return dialer.Dial("unix", args[1])
	}
	return nil, fmt.Errorf("usage: relay tcp HOST PORT | relay unix PATH")
}

func main() {
	conn, err := dial(os.Args[1:])
	if err != nil {
		fmt.Printf("error: %v\n", err)
		os.Exit(1)
	}
	fmt.Println("ok")
	sent := make(chan struct{})
	go func() {
		io.Copy(conn, os.Stdin)
		conn.(halfCloser).CloseWrite()
		close(sent)
	}()
	count, _ := io.Copy(os.Stdout, conn)
	fmt.Fprintf(os.Stderr, "eof %d\n", count)
	<-sent
}

// Command sftp-server serves SFTP on stdin and stdout with the file permissions of its user. It needs no entry in
// /etc/passwd, which OpenSSH's own does.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/pkg/sftp"
)

type stdio struct {
	io.Reader
	io.WriteCloser
}

func main() {
	home, err := os.Getwd()
	if err != nil {
		home = "/"
	}
	// Clients send many requests ahead. Unbuffered, each would cost two reads or more.
	requests := bufio.NewReaderSize(os.Stdin, 256*1024)
	server, err := sftp.NewServer(stdio{requests, os.Stdout}, sftp.WithServerWorkingDirectory(home))
	if err == nil {
		err = server.Serve()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintf(os.Stderr, "sftp-server: %v\n", err)
		os.Exit(1)
	}
}

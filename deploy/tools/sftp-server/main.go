// Command sftp-server serves SFTP on stdin and stdout with the file permissions of its user. It needs no entry in
// /etc/passwd, which OpenSSH's own does.
package main

import (
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
	server, err := sftp.NewServer(stdio{os.Stdin, os.Stdout}, sftp.WithServerWorkingDirectory(home))
	if err == nil {
		err = server.Serve()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintf(os.Stderr, "sftp-server: %v\n", err)
		os.Exit(1)
	}
}

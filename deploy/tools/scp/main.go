// Command scp is the remote half of the scp protocol (scp -t and scp -f), for images that carry no OpenSSH. Clients
// newer than OpenSSH 9.0 use it with scp -O only; older ones always. The messages are those of OpenSSH's scp.c.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
)

type options struct {
	recursive, preserve, directory bool
}

// session is one side of the protocol: every message is answered by a byte 0, or 1 and a line.
type session struct {
	in     *bufio.Reader
	out    *bufio.Writer
	failed bool
}

func (s *session) ok() error {
	s.out.WriteByte(0)
	return s.out.Flush()
}

// complain reports a failure that does not end the transfer.
func (s *session) complain(err error) {
	s.failed = true
	fmt.Fprintf(s.out, "\x01scp: %v\n", err)
	s.out.Flush()
}

// answer reads the peer's verdict on the last message.
func (s *session) answer() error {
	verdict, err := s.in.ReadByte()
	if err != nil {
		return err
	}
	if verdict == 0 {
		return nil
	}
	line, _ := s.in.ReadString('\n')
	s.failed = true
	if verdict == 1 {
		return errRefused
	}
	return fmt.Errorf("the peer ended the transfer: %s", line)
}

func main() {
	var o options
	sink := flag.Bool("t", false, "receive")
	source := flag.Bool("f", false, "send")
	flag.BoolVar(&o.recursive, "r", false, "recursive")
	flag.BoolVar(&o.preserve, "p", false, "preserve times and modes")
	flag.BoolVar(&o.directory, "d", false, "the target must be a directory")
	flag.Bool("v", false, "verbose (ignored)")
	flag.CommandLine.Parse(split(os.Args[1:]))
	s := &session{in: bufio.NewReaderSize(os.Stdin, 1<<16), out: bufio.NewWriterSize(os.Stdout, 1<<16)}
	var err error
	switch {
	case *sink && flag.NArg() == 1:
		err = s.receive(flag.Arg(0), o)
	case *source && flag.NArg() > 0:
		err = s.send(flag.Args(), o)
	default:
		fmt.Fprintln(os.Stderr, "scp: only -t TARGET and -f SOURCE... are offered here; run scp on your own machine")
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "scp: %v\n", err)
	}
	if err != nil || s.failed {
		os.Exit(1)
	}
}

// split turns grouped short flags ("-rp") into single ones, which package flag wants.
func split(args []string) []string {
	var all []string
	for i, arg := range args {
		if arg == "--" {
			return append(all, args[i:]...)
		}
		if len(arg) < 2 || arg[0] != '-' {
			return append(all, args[i:]...)
		}
		for _, letter := range arg[1:] {
			all = append(all, "-"+string(letter))
		}
	}
	return all
}

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

type times struct {
	modified, accessed time.Time
}

func (s *session) receive(target string, o options) error {
	info, err := os.Stat(target)
	isDirectory := err == nil && info.IsDir()
	if o.directory && !isDirectory {
		s.complain(fmt.Errorf("%s: Not a directory", target))
		return nil
	}
	if err := s.ok(); err != nil {
		return err
	}
	return s.receiveInto(target, isDirectory, o)
}

// receiveInto handles the messages of one directory level, to its "E" or the end of input.
func (s *session) receiveInto(target string, isDirectory bool, o options) error {
	var stamp *times
	for {
		line, err := s.in.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" {
			return nil
		}
		if err != nil || len(line) < 2 {
			return fmt.Errorf("protocol error: lost connection")
		}
		body := line[1 : len(line)-1]
		switch line[0] {
		case 1, 2:
			fmt.Fprintln(os.Stderr, body)
			s.failed = true
			if line[0] == 2 {
				return errors.New("the peer gave up")
			}
		case 'E':
			return s.ok()
		case 'T':
			if stamp, err = parseTimes(body); err != nil {
				return err
			}
			if err := s.ok(); err != nil {
				return err
			}
		case 'C', 'D':
			if err := s.entry(line[0] == 'D', body, place{target, isDirectory, stamp}, o); err != nil {
				return err
			}
			stamp = nil
		default:
			return fmt.Errorf("protocol error: unexpected message")
		}
	}
}

type place struct {
	target      string
	isDirectory bool
	stamp       *times
}

func parseTimes(body string) (*times, error) {
	fields := strings.Fields(body)
	if len(fields) != 4 {
		return nil, errors.New("protocol error: bad times")
	}
	modified, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return nil, errors.New("protocol error: mtime.sec not delimited")
	}
	accessed, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return nil, errors.New("protocol error: atime.sec not delimited")
	}
	return &times{time.Unix(modified, 0), time.Unix(accessed, 0)}, nil
}

func (s *session) entry(isDirectory bool, body string, at place, o options) error {
	fields := strings.SplitN(body, " ", 3)
	if len(fields) != 3 {
		return errors.New("protocol error: bad message")
	}
	bits, err := strconv.ParseUint(fields[0], 8, 32)
	if err != nil {
		return errors.New("protocol error: bad mode")
	}
	size, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil || size < 0 {
		return errors.New("protocol error: size not delimited")
	}
	name := fields[2]
	if name == "" || name == "." || name == ".." || strings.ContainsRune(name, '/') {
		return fmt.Errorf("protocol error: unexpected filename: %q", name)
	}
	path := at.target
	if at.isDirectory {
		path = filepath.Join(path, name)
	}
	if isDirectory {
		return s.receiveDirectory(path, os.FileMode(bits&0o777), at.stamp, o)
	}
	return s.receiveFile(path, incoming{os.FileMode(bits & 0o777), size, at.stamp}, o)
}

func (s *session) receiveDirectory(path string, perm os.FileMode, stamp *times, o options) error {
	if !o.recursive {
		return errors.New("protocol error: received directory without -r")
	}
	info, err := os.Stat(path)
	created := false
	if err == nil && !info.IsDir() {
		s.complain(fmt.Errorf("%s: Not a directory", path))
		return nil
	}
	if err != nil {
		if err := os.Mkdir(path, perm|0o700); err != nil {
			s.complain(err)
			return nil
		}
		created = true
	}
	if err := s.ok(); err != nil {
		return err
	}
	if err := s.receiveInto(path, true, o); err != nil {
		return err
	}
	if stamp != nil {
		os.Chtimes(path, stamp.accessed, stamp.modified)
	}
	if created || o.preserve {
		os.Chmod(path, perm)
	}
	return nil
}

type incoming struct {
	perm  os.FileMode
	size  int64
	stamp *times
}

func (s *session) receiveFile(path string, file incoming, o options) error {
	target, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, file.perm|0o200)
	if err != nil {
		s.complain(err)
		return nil
	}
	defer target.Close()
	if err := s.ok(); err != nil {
		return err
	}
	copied, writeErr := io.CopyN(target, s.in, file.size)
	if writeErr != nil {
		// A full disk must not desynchronise the stream: the rest of the bytes are read and dropped.
		if _, err := io.CopyN(io.Discard, s.in, file.size-copied); err != nil {
			return errors.New("protocol error: lost connection")
		}
	} else {
		writeErr = target.Truncate(file.size)
	}
	if o.preserve {
		target.Chmod(file.perm)
	}
	if file.stamp != nil {
		os.Chtimes(path, file.stamp.accessed, file.stamp.modified)
	}
	if err := s.answer(); err != nil && !errors.Is(err, errRefused) {
		return err
	}
	if writeErr != nil {
		s.complain(writeErr)
		return nil
	}
	return s.ok()
}

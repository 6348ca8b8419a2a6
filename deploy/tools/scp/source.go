package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

var errRefused = errors.New("refused")

// mode is the permission word of the protocol: nine bits and setuid, setgid, sticky.
func mode(info fs.FileInfo) uint32 {
	bits := uint32(info.Mode().Perm())
	if info.Mode()&fs.ModeSetuid != 0 {
		bits |= 0o4000
	}
	if info.Mode()&fs.ModeSetgid != 0 {
		bits |= 0o2000
	}
	if info.Mode()&fs.ModeSticky != 0 {
		bits |= 0o1000
	}
	return bits
}

func (s *session) say(format string, args ...any) error {
	fmt.Fprintf(s.out, format, args...)
	if err := s.out.Flush(); err != nil {
		return err
	}
	return s.answer()
}

func (s *session) send(patterns []string, o options) error {
	if err := s.answer(); err != nil {
		return err
	}
	for _, pattern := range patterns {
		// The shell that ran us has expanded wildcards already; a name that is left is a name.
		if err := s.sendPath(pattern, o); err != nil && !errors.Is(err, errRefused) {
			return err
		}
	}
	return nil
}

func (s *session) sendPath(path string, o options) error {
	info, err := os.Stat(path)
	if err != nil {
		s.complain(err)
		return nil
	}
	if info.IsDir() && !o.recursive {
		s.complain(fmt.Errorf("%s: not a regular file", path))
		return nil
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		s.complain(fmt.Errorf("%s: not a regular file", path))
		return nil
	}
	if o.preserve {
		stamp := info.ModTime().Unix()
		if err := s.say("T%d 0 %d 0\n", stamp, stamp); err != nil {
			return err
		}
	}
	if info.IsDir() {
		return s.sendDirectory(path, info, o)
	}
	return s.sendFile(path, info)
}

func (s *session) sendDirectory(path string, info fs.FileInfo, o options) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		s.complain(err)
		return nil
	}
	if err := s.say("D%04o 0 %s\n", mode(info), filepath.Base(absolute(path))); err != nil {
		return err
	}
	for _, entry := range entries {
		if err := s.sendPath(filepath.Join(path, entry.Name()), o); err != nil && !errors.Is(err, errRefused) {
			return err
		}
	}
	return s.say("E\n")
}

// absolute gives "." and ".." a name.
func absolute(path string) string {
	full, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return full
}

func (s *session) sendFile(path string, info fs.FileInfo) error {
	file, err := os.Open(path)
	if err != nil {
		s.complain(err)
		return nil
	}
	defer file.Close()
	if err := s.say("C%04o %d %s\n", mode(info), info.Size(), filepath.Base(path)); err != nil {
		return err
	}
	copied, readErr := io.CopyN(s.out, file, info.Size())
	// A file that shrank under us still owes the announced number of bytes.
	if _, err := io.CopyN(s.out, zeros{}, info.Size()-copied); err != nil {
		return err
	}
	if readErr != nil {
		s.complain(readErr)
	} else if err := s.ok(); err != nil {
		return err
	}
	return s.answer()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

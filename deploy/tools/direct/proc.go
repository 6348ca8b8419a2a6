package main

import (
	"strconv"
	"strings"
)

// sessionOf reads the state and the session of a process from the text of /proc/PID/stat. The name of the program, in
// parentheses, may have any characters.
func sessionOf(stat string) (state string, session int) {
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(fields) < 4 {
		return "", 0
	}
	session, _ = strconv.Atoi(fields[3])
	return fields[0], session
}

// ignoresHangUp reads /proc/PID/status: the lowest bit of SigIgn is that of HUP.
func ignoresHangUp(status string) bool {
	for line := range strings.Lines(status) {
		mask, isMask := strings.CutPrefix(line, "SigIgn:")
		if !isMask {
			continue
		}
		bits, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
		return err == nil && bits&1 == 1
	}
	return false
}

package main

import (
	"bufio"
	"bytes"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
)

const cgroups = "/sys/fs/cgroup/"

// Folder on the disk of the node: the volume that this program is in.
const toolsFolder = "/.berth"

// The series that has the rate of a counter.
var rateOf = map[string]string{
	"cpu_seconds_total":            "cpu_cores",
	"disk_read_bytes_total":        "disk_read_bytes_per_second",
	"disk_written_bytes_total":     "disk_written_bytes_per_second",
	"network_receive_bytes_total":  "network_receive_bytes_per_second",
	"network_transmit_bytes_total": "network_transmit_bytes_per_second",
}

// A number in a file of its own. "max", and what cgroup v1 writes instead of it, is no number.
func number(path string) (float64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	value, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
	return value, err == nil && value >= 0 && value < math.MaxInt64/2
}

// A number in a file of lines "NAME NUMBER".
func field(path, name string) (float64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if before, after, found := strings.Cut(strings.TrimSpace(line), " "); found && before == name {
			value, err := strconv.ParseFloat(after, 64)
			return value, err == nil
		}
	}
	return 0, false
}

// Bytes read and written by the lines "8:0 rbytes=1 wbytes=2 rios=3" of io.stat.
func parseIO(text string) (read, written float64) {
	for _, word := range strings.Fields(text) {
		name, after, _ := strings.Cut(word, "=")
		value, err := strconv.ParseFloat(after, 64)
		if err != nil {
			continue
		}
		switch name {
		case "rbytes":
			read += value
		case "wbytes":
			written += value
		}
	}
	return read, written
}

// The same from the lines "8:0 Read 1" of cgroup v1.
func parseOldIO(text string) (read, written float64) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) != 3 {
			continue
		}
		value, _ := strconv.ParseFloat(words[2], 64)
		switch words[1] {
		case "Read":
			read += value
		case "Write":
			written += value
		}
	}
	return read, written
}

// Bytes that every interface but the loopback received and sent, from /proc/net/dev.
func parseNetwork(text []byte) (received, sent float64) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		name, rest, found := strings.Cut(lines.Text(), ":")
		words := strings.Fields(rest)
		if !found || len(words) < 9 || strings.TrimSpace(name) == "lo" {
			continue
		}
		in, _ := strconv.ParseFloat(words[0], 64)
		out, _ := strconv.ParseFloat(words[8], 64)
		received += in
		sent += out
	}
	return received, sent
}

// Memory without the file cache that the kernel can take back, as the kubelet counts it.
func workingSet(usage, stat, inactive string) (float64, bool) {
	used, known := number(usage)
	cache, _ := field(stat, inactive)
	return max(0, used-cache), known
}

func readCgroup(totals, values map[string]float64) {
	put := func(to map[string]float64, name string, value float64, known bool) {
		if known {
			to[name] = value
		}
	}
	if _, err := os.Stat(cgroups + "cgroup.controllers"); err == nil {
		used, known := field(cgroups+"cpu.stat", "usage_usec")
		put(totals, "cpu_seconds_total", used/1e6, known)
		memory, known := workingSet(cgroups+"memory.current", cgroups+"memory.stat", "inactive_file")
		put(values, "memory_used_bytes", memory, known)
		limit, known := number(cgroups + "memory.max")
		put(values, "memory_limit_bytes", limit, known)
		if text, err := os.ReadFile(cgroups + "io.stat"); err == nil {
			totals["disk_read_bytes_total"], totals["disk_written_bytes_total"] = parseIO(string(text))
		}
		return
	}
	used, known := number(cgroups + "cpuacct/cpuacct.usage")
	put(totals, "cpu_seconds_total", used/1e9, known)
	folder := cgroups + "memory/memory."
	memory, known := workingSet(folder+"usage_in_bytes", folder+"stat", "total_inactive_file")
	put(values, "memory_used_bytes", memory, known)
	limit, known := number(folder + "limit_in_bytes")
	put(values, "memory_limit_bytes", limit, known)
	if text, err := os.ReadFile(cgroups + "blkio/blkio.throttle.io_service_bytes_recursive"); err == nil {
		totals["disk_read_bytes_total"], totals["disk_written_bytes_total"] = parseOldIO(string(text))
	}
}

// The disk of the instance, unless it is a folder on the disk of the node, whose numbers say nothing of the instance.
func readDisk(folder string, values map[string]float64) {
	var disk, node syscall.Stat_t
	if syscall.Stat(folder, &disk) != nil || syscall.Stat(toolsFolder, &node) != nil || disk.Dev == node.Dev {
		return
	}
	var space syscall.Statfs_t
	if syscall.Statfs(folder, &space) != nil {
		return
	}
	values["disk_used_bytes"] = float64(space.Blocks-space.Bfree) * float64(space.Bsize)
	values["disk_limit_bytes"] = float64(space.Blocks) * float64(space.Bsize)
}

// Counters and current values of the container. What cannot be read is left out.
func readContainer(folder string) (totals, values map[string]float64) {
	totals, values = map[string]float64{}, map[string]float64{}
	readCgroup(totals, values)
	readDisk(folder, values)
	if text, err := os.ReadFile("/proc/net/dev"); err == nil {
		totals["network_receive_bytes_total"], totals["network_transmit_bytes_total"] = parseNetwork(text)
	}
	return totals, values
}

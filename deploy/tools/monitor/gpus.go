package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// nvidia-smi takes seconds on a node with many GPUs and no persistence mode. A driver that hangs takes for ever.
	toolTimeout = 12 * time.Second
	maxOutput   = 1 << 20
	maxGPUs     = 64
	mebibyte    = 1 << 20
)

type gpu struct {
	uuid   string
	values map[string]float64
}

var (
	nvidiaQuery = []string{
		"--query-gpu=uuid,utilization.gpu,memory.used,memory.total,temperature.gpu,power.draw",
		"--format=csv,noheader,nounits",
	}
	rocmQuery = []string{"--showuse", "--showmeminfo", "vram", "--showtemp", "--showpower", "--showuniqueid", "--json"}
	uuid      = regexp.MustCompile(`^(GPU|MIG)-[0-9A-Za-z/-]{1,80}$`)
)

// Reads a number as the tools write it. Instead of a number they write [N/A], [Not Supported], [Insufficient
// Permissions], [Unknown Error] or [GPU requires reset].
func put(values map[string]float64, name, text string, factor float64) bool {
	value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	isNumber := err == nil && value >= 0 && value < 1e15
	if isNumber {
		values[name] = value * factor
	}
	return isNumber
}

// The GPUs in the lines that nvidia-smi writes for nvidiaQuery. A line that is none, such as "No devices were found", is
// left out.
func parseNvidia(output []byte) []gpu {
	found := []gpu{}
	for line := range strings.Lines(string(output)) {
		fields := strings.Split(strings.TrimSpace(line), ",")
		if len(fields) != 6 || len(found) == maxGPUs {
			continue
		}
		one := gpu{uuid: strings.TrimSpace(fields[0]), values: map[string]float64{}}
		if !uuid.MatchString(one.uuid) {
			continue
		}
		put(one.values, "gpu_utilization_percent", fields[1], 1)
		put(one.values, "gpu_memory_used_bytes", fields[2], mebibyte)
		put(one.values, "gpu_memory_limit_bytes", fields[3], mebibyte)
		put(one.values, "gpu_temperature_celsius", fields[4], 1)
		put(one.values, "gpu_power_watts", fields[5], 1)
		found = append(found, one)
	}
	return found
}

// What rocm-smi calls a value. The name depends on the GPU and on the version of ROCm; the first number counts.
var rocmNames = map[string][]string{
	"gpu_utilization_percent": {"GPU use (%)"},
	"gpu_memory_used_bytes":   {"VRAM Total Used Memory (B)"},
	"gpu_memory_limit_bytes":  {"VRAM Total Memory (B)"},
	"gpu_temperature_celsius": {"Temperature (Sensor edge) (C)", "Temperature (Sensor junction) (C)"},
	"gpu_power_watts":         {"Average Graphics Package Power (W)", "Current Socket Graphics Package Power (W)"},
}

// The GPUs in what rocm-smi writes for rocmQuery: warnings, then one object with a field per card.
func parseRocm(output []byte) []gpu {
	found := []gpu{}
	from := bytes.IndexByte(output, '{')
	if from < 0 {
		return found
	}
	var cards map[string]map[string]any
	if json.Unmarshal(output[from:], &cards) != nil {
		return found
	}
	numbers := []int{}
	for name := range cards {
		if after, isCard := strings.CutPrefix(name, "card"); isCard {
			if number, err := strconv.Atoi(after); err == nil {
				numbers = append(numbers, number)
			}
		}
	}
	slices.Sort(numbers)
	for _, number := range numbers {
		if len(found) == maxGPUs {
			break
		}
		card := cards["card"+strconv.Itoa(number)]
		one := gpu{values: map[string]float64{}}
		if id, isText := card["Unique ID"].(string); isText && uuid.MatchString("GPU-"+id) && id != "N/A" {
			one.uuid = "GPU-" + id
		}
		for name, theirs := range rocmNames {
			for _, field := range theirs {
				if text, isText := card[field].(string); isText && put(one.values, name, text, 1) {
					break
				}
			}
		}
		found = append(found, one)
	}
	return found
}

type tool struct {
	name  string
	paths []string
	query []string
	parse func([]byte) []gpu
}

var tools = []tool{
	// Where the container toolkit puts it; an image with an empty PATH has it too.
	{"nvidia-smi", []string{"/usr/bin/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi"}, nvidiaQuery, parseNvidia},
	{"rocm-smi", []string{"/opt/rocm/bin/rocm-smi", "/usr/bin/rocm-smi"}, rocmQuery, parseRocm},
}

func find(one tool) string {
	for _, path := range one.paths {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	for _, folder := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(folder, one.name)
		if info, err := os.Stat(path); filepath.IsAbs(path) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

type limited struct{ bytes.Buffer }

func (l *limited) Write(text []byte) (int, error) {
	if l.Len()+len(text) > maxOutput {
		return 0, io.ErrShortWrite
	}
	return l.Buffer.Write(text)
}

// The tool that tells about the GPUs, and what it tells: "none" without a tool, "failed" when it does not answer.
func readGPUs() (string, []gpu) {
	for _, one := range tools {
		path := find(one)
		if path == "" {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), toolTimeout)
		defer cancel()
		command := exec.CommandContext(ctx, path, one.query...)
		// A child of the tool may keep the pipe open after the tool was killed.
		command.WaitDelay = time.Second
		var output limited
		command.Stdout = &output
		err := command.Run()
		found := one.parse(output.Bytes())
		if err != nil || len(found) == 0 {
			return "failed", nil
		}
		return one.name, found
	}
	return "none", nil
}

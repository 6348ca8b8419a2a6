package main

import (
	"reflect"
	"testing"
	"time"
)

func TestNvidia(t *testing.T) {
	const id = "GPU-072b19bd-4ccf-63cf-6435-cf462aff833d"
	for _, one := range []struct {
		says, output string
		want         []map[string]float64
	}{
		{"two GPUs", id + ", 97, 60211, 81559, 61, 684.32\n" + id + ", 0, 1, 81559, 33, 69.98\n", []map[string]float64{
			{"gpu_utilization_percent": 97, "gpu_memory_used_bytes": 60211 << 20, "gpu_memory_limit_bytes": 81559 << 20,
				"gpu_temperature_celsius": 61, "gpu_power_watts": 684.32},
			{"gpu_utilization_percent": 0, "gpu_memory_used_bytes": 1 << 20, "gpu_memory_limit_bytes": 81559 << 20,
				"gpu_temperature_celsius": 33, "gpu_power_watts": 69.98},
		}},
		// An A100 in MIG mode, in a container without privileges, driver 535.
		{"MIG", id + ", [N/A], [Insufficient Permissions], [Insufficient Permissions], 47, 87.13\n",
			[]map[string]float64{{"gpu_temperature_celsius": 47, "gpu_power_watts": 87.13}}},
		{"an old GPU", id + ", [Not Supported], 350, 2002, 41, [Not Supported]\n",
			[]map[string]float64{{"gpu_memory_used_bytes": 350 << 20, "gpu_memory_limit_bytes": 2002 << 20, "gpu_temperature_celsius": 41}}},
		{"a driver before 450", id + ", 55, 8, 7979, 45, N/A\n", []map[string]float64{{"gpu_utilization_percent": 55,
			"gpu_memory_used_bytes": 8 << 20, "gpu_memory_limit_bytes": 7979 << 20, "gpu_temperature_celsius": 45}}},
		{"a GPU that broke", id + ", [Unknown Error], [GPU requires reset], [GPU requires reset], [Unknown Error], [Unknown Error]\n",
			[]map[string]float64{{}}},
		{"no number", id + ", nan, inf, -1, 1e400, 0x1p3 W\n", []map[string]float64{{}}},
		{"no GPU", "No devices were found\n", nil},
		{"no driver", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n\n", nil},
		{"a lost GPU", "Unable to determine the device handle for GPU0000:41:00.0: Unknown Error\n" + id + ", 3, 1, 2, 3, 4\n",
			[]map[string]float64{{"gpu_utilization_percent": 3, "gpu_memory_used_bytes": 1 << 20, "gpu_memory_limit_bytes": 2 << 20,
				"gpu_temperature_celsius": 3, "gpu_power_watts": 4}}},
		{"nothing", "", nil},
	} {
		var got []map[string]float64
		for _, gpu := range parseNvidia([]byte(one.output)) {
			got = append(got, gpu.values)
		}
		if !reflect.DeepEqual(got, one.want) {
			t.Errorf("%s: %v, not %v", one.says, got, one.want)
		}
	}
}

func TestRocm(t *testing.T) {
	const output = `WARNING: AMD GPU device(s) is/are in a low-power state. Check power control/runtime_status

{"card1": {"Unique ID": "0x8c4b2f1e6a7d3920", "Temperature (Sensor junction) (C)": "44.0", "Current Socket Graphics Package Power (W)": "141.0",
"GPU use (%)": "19", "VRAM Total Memory (B)": "206141652992", "VRAM Total Used Memory (B)": "297230336"},
"card0": {"Unique ID": "N/A", "Temperature (Sensor edge) (C)": "31.0", "Temperature (Sensor junction) (C)": "33.0",
"Average Graphics Package Power (W)": "N/A", "GPU use (%)": "0", "VRAM Total Memory (B)": "21458059264", "VRAM Total Used Memory (B)": "27856896"},
"system": {"Driver version": "6.8.5"}}`
	want := []gpu{
		{"", map[string]float64{"gpu_utilization_percent": 0, "gpu_temperature_celsius": 31,
			"gpu_memory_used_bytes": 27856896, "gpu_memory_limit_bytes": 21458059264}},
		{"GPU-0x8c4b2f1e6a7d3920", map[string]float64{"gpu_utilization_percent": 19, "gpu_temperature_celsius": 44, "gpu_power_watts": 141,
			"gpu_memory_used_bytes": 297230336, "gpu_memory_limit_bytes": 206141652992}},
	}
	if got := parseRocm([]byte(output)); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
	for _, broken := range []string{"", "ERROR: No AMD GPUs", "{", `{"card0": "?"}`, `[]`} {
		if got := parseRocm([]byte(broken)); len(got) != 0 {
			t.Errorf("%q: %v", broken, got)
		}
	}
}

func TestContainer(t *testing.T) {
	if read, written := parseIO("8:0 rbytes=1459200 wbytes=314773504 rios=192 wios=353\n8:16 rbytes=1 wbytes=2\n"); read != 1459201 || written != 314773506 {
		t.Errorf("io.stat: %v %v", read, written)
	}
	if read, written := parseOldIO("8:0 Read 4096\n8:0 Write 8192\n8:0 Total 12288\nTotal 12288\n"); read != 4096 || written != 8192 {
		t.Errorf("blkio: %v %v", read, written)
	}
	const network = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 9999       9    0    0    0     0          0         0     9999       9    0    0    0     0       0          0
  eth0: 1234      10    0    0    0     0          0         0      567       8    0    0    0     0       0          0
`
	if received, sent := parseNetwork([]byte(network)); received != 1234 || sent != 567 {
		t.Errorf("network: %v %v", received, sent)
	}
}

func TestHour(t *testing.T) {
	m := newMonitor("/")
	m.tool, m.gpus = "nvidia-smi", []gpu{{"GPU-1", map[string]float64{"gpu_utilization_percent": 7}}}
	if got := m.state(); got != "nvidia-smi 1 -\n" {
		t.Errorf("state: %q", got)
	}
	m.started = time.Now().Add(-302 * step)
	for _, slot := range []int64{20, 61, 300, 302} {
		m.samples = append(m.samples, sample{slot, map[key]float64{{"cpu_cores", -1}: float64(slot)}})
	}
	got := m.report().Series[0].Values
	if len(got) != kept || got[0] != nil || got[kept-2] != nil || *got[kept-1] != 302 || *got[kept-3] != 300 {
		t.Errorf("the hour has other values: %d", len(got))
	}
	m.samples = m.samples[2:]
	if got := m.report().Series[0].Values; len(got) != 3 || *got[0] != 300 || got[1] != nil {
		t.Errorf("a young instance has other values: %d", len(got))
	}
}

package main

import (
	"fmt"
	"math"
	"sync"
	"time"
)

// From this utilisation on a GPU counts as busy, in percent: an idle one tells 0, and a display or a driver a little.
const busyFrom = 5

// A series of one GPU, or with -1 of the whole instance.
type key struct {
	name string
	gpu  int
}

type sample struct {
	// Number of the step since the start.
	slot   int64
	values map[key]float64
}

type monitor struct {
	folder  string
	started time.Time

	mutex   sync.Mutex
	samples []sample
	totals  map[string]float64
	tool    string
	gpus    []gpu
	// When a GPU was last busy; zero when none ever was.
	busy time.Time
}

func newMonitor(folder string) *monitor {
	return &monitor{folder: folder, started: time.Now(), tool: "none"}
}

// Samples for ever. A sample that takes longer than a step delays the next one, which leaves a gap.
func (m *monitor) run() {
	ticker := time.NewTicker(step)
	for {
		m.sample()
		<-ticker.C
	}
}

func (m *monitor) sample() {
	tool, gpus := readGPUs()
	totals, values := readContainer(m.folder)
	now := time.Now()
	m.mutex.Lock()
	defer m.mutex.Unlock()
	slot := int64(now.Sub(m.started) / step)
	if last := len(m.samples) - 1; last >= 0 && m.samples[last].slot == slot {
		return
	}
	all := map[key]float64{}
	for name, value := range values {
		all[key{name, -1}] = value
	}
	if last := len(m.samples) - 1; last >= 0 {
		seconds := float64(slot-m.samples[last].slot) * step.Seconds()
		for name, total := range totals {
			// A counter that went back began anew.
			if before, known := m.totals[name]; known && total >= before {
				all[key{rateOf[name], -1}] = (total - before) / seconds
			}
		}
	}
	for index, one := range gpus {
		for name, value := range one.values {
			all[key{name, index}] = value
		}
		if one.values["gpu_utilization_percent"] >= busyFrom {
			m.busy = now
		}
	}
	m.totals, m.tool, m.gpus = totals, tool, gpus
	m.samples = append(m.samples, sample{slot, all})
	if len(m.samples) > kept {
		m.samples = m.samples[len(m.samples)-kept:]
	}
}

type series struct {
	Name string `json:"name"`
	// Absent for the whole instance.
	GPU    *int       `json:"gpu,omitempty"`
	Values []*float64 `json:"values"`
}

type device struct {
	UUID string `json:"uuid"`
}

type report struct {
	// Seconds between two values.
	Step float64 `json:"step"`
	// Seconds since the last value.
	Age    float64            `json:"age"`
	Tool   string             `json:"tool"`
	GPUs   []device           `json:"gpus"`
	Totals map[string]float64 `json:"totals"`
	Series []series           `json:"series"`
}

// The last hour: every series has as many values, the newest last. A step without a sample is null.
func (m *monitor) report() report {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	found := report{Step: step.Seconds(), Tool: m.tool, Totals: m.totals, GPUs: []device{}, Series: []series{}}
	for _, one := range m.gpus {
		found.GPUs = append(found.GPUs, device{one.uuid})
	}
	if len(m.samples) == 0 {
		return found
	}
	newest := m.samples[len(m.samples)-1].slot
	oldest := max(m.samples[0].slot, newest-kept+1)
	found.Age = max(0, (time.Since(m.started) - time.Duration(newest)*step).Seconds())
	byKey := map[key][]*float64{}
	for _, one := range m.samples {
		if one.slot < oldest {
			continue
		}
		for key, value := range one.values {
			if byKey[key] == nil {
				byKey[key] = make([]*float64, newest-oldest+1)
			}
			if !math.IsNaN(value) && !math.IsInf(value, 0) {
				byKey[key][one.slot-oldest] = &value
			}
		}
	}
	for key, values := range byKey {
		one := series{Name: key.name, Values: values}
		if key.gpu >= 0 {
			one.GPU = &key.gpu
		}
		found.Series = append(found.Series, one)
	}
	return found
}

func (m *monitor) state() string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	measured := 0
	for _, one := range m.gpus {
		if _, known := one.values["gpu_utilization_percent"]; known {
			measured++
		}
	}
	idle := "-"
	if !m.busy.IsZero() {
		idle = fmt.Sprint(int64(time.Since(m.busy).Seconds()))
	}
	return fmt.Sprintf("%s %d %s\n", m.tool, measured, idle)
}

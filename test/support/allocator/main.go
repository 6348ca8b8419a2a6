// Command allocator answers what the scheduler's allocator of Dynamic Resource Allocation places on a node: for each world
// on a line of its input, a line of its output.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
)

// mostPlaced ends a count that has no end, such as that of a shared device without a capacity.
const mostPlaced = 200

type world struct {
	Node string `json:"node"`
	// Before is what the slices were when the claims of Taken got their devices.
	Before  []*resourceapi.ResourceSlice `json:"before"`
	Slices  []*resourceapi.ResourceSlice `json:"slices"`
	Classes classes                      `json:"classes"`
	// Held is what claims have from the start.
	Held []resourceapi.AllocationResult `json:"held"`
	// Taken are the claims that come first, one after the other.
	Taken []ask `json:"taken"`
}

// ask is for one device of a class.
type ask struct {
	Class string `json:"class"`
	// Capacity is what it asks of a shared device; a pod that asks by an extended resource names none.
	Capacity map[resourceapi.QualifiedName]resource.Quantity `json:"capacity"`
}

type answer struct {
	// Taken is what each claim got; null where nothing was left for it.
	Taken []*resourceapi.AllocationResult `json:"taken"`
	// Free is by class how many claims get a device, if no other class is asked for.
	Free map[string]int `json:"free"`
}

type classes []*resourceapi.DeviceClass

func (all classes) List() ([]*resourceapi.DeviceClass, error) { return all, nil }

func (all classes) Get(name string) (*resourceapi.DeviceClass, error) {
	at := slices.IndexFunc(all, func(one *resourceapi.DeviceClass) bool { return one.Name == name })
	if at < 0 {
		return nil, fmt.Errorf("there is no DeviceClass %s", name)
	}
	return all[at], nil
}

var (
	features = dynamicresources.AllocatorFeatures(feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate))
	cache    = cel.NewCache(100, cel.Features{EnableConsumableCapacity: features.ConsumableCapacity})
)

// stateOf is what the scheduler knows of allocated claims (foreachAllocatedDevice of its plugin).
func stateOf(held []resourceapi.AllocationResult) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, one := range held {
		for _, result := range one.Devices.Results {
			id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			if result.ShareID == nil {
				state.AllocatedDevices.Insert(id)
				continue
			}
			state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
			state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
		}
	}
	return state
}

// claimFor is a claim like those that the scheduler makes for pods that ask for one device as an extended resource.
func claimFor(asked ask) *resourceapi.ResourceClaim {
	exactly := &resourceapi.ExactDeviceRequest{
		DeviceClassName: asked.Class,
		AllocationMode:  resourceapi.DeviceAllocationModeExactCount,
		Count:           1,
	}
	if len(asked.Capacity) > 0 {
		exactly.Capacity = &resourceapi.CapacityRequirements{Requests: asked.Capacity}
	}
	requests := []resourceapi.DeviceRequest{{Name: "container-0-request-0", Exactly: exactly}}
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "claim"},
		Spec:       resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: requests}},
	}
}

// place gives a claim its device. It returns nil where none is left; an error is one of the slices, with
// which the scheduler places nothing either.
func (w world) place(told []*resourceapi.ResourceSlice, held []resourceapi.AllocationResult, asked ask) *resourceapi.AllocationResult {
	ctx := context.Background()
	allocator, err := structured.NewAllocator(ctx, features, stateOf(held), w.Classes, told, cache)
	if err != nil {
		return nil
	}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.Node}}
	results, err := allocator.Allocate(ctx, node, []*resourceapi.ResourceClaim{claimFor(asked)})
	if err != nil || len(results) == 0 {
		return nil
	}
	return &results[0]
}

func (w world) free(held []resourceapi.AllocationResult, class string) int {
	held = slices.Clone(held)
	for count := range mostPlaced {
		result := w.place(w.Slices, held, ask{Class: class})
		if result == nil {
			return count
		}
		held = append(held, *result)
	}
	return mostPlaced
}

func (w world) answer() answer {
	held := slices.Clone(w.Held)
	found := answer{Taken: []*resourceapi.AllocationResult{}, Free: map[string]int{}}
	for _, asked := range w.Taken {
		result := w.place(w.Before, held, asked)
		found.Taken = append(found.Taken, result)
		if result != nil {
			held = append(held, *result)
		}
	}
	for _, class := range w.Classes {
		found.Free[class.Name] = w.free(held, class.Name)
	}
	return found
}

func main() {
	input, output := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var next world
		err := input.Decode(&next)
		if err == io.EOF {
			return
		}
		if err == nil {
			err = output.Encode(next.answer())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

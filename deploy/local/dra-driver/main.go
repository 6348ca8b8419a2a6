// Gives GPUs that do not exist to a kubelet by Dynamic Resource Allocation, as NVIDIA's driver
// (kubernetes-sigs/dra-driver-nvidia-gpu) gives real ones, whole or in partitions: ResourceSlices with its attributes and
// with the counters that a GPU and its partitions share, and for each claim a CDI file with NVIDIA_VISIBLE_DEVICES and
// device files. A file names the GPUs that are sick: the slice taints them and their partitions.
//
//	dra-driver -kubeconfig FILE -node NAME -cdi FOLDER -sick FILE -product 'NVIDIA L4' -memory 23034Mi -version 580.95.5 GPU-a GPU-b
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	dra "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

const (
	driverName = "gpu.berth.dev"
	cdiKind    = driverName + "/gpu"
	// look is the time between two looks at the file of sick GPUs.
	look = 200 * time.Millisecond
)

// controlFiles are for every container with a GPU.
var controlFiles = []string{"nvidiactl", "nvidia-modeset", "nvidia-uvm", "nvidia-uvm-tools"}

// object is one of JSON.
type object = map[string]any

// computeParts and memoryParts are those of a GPU.
const computeParts, memoryParts = 7, 8

// profiles are those of NVIDIA's MIG user guide that an A100 has too, with the names of a GPU of 24 GB: how many parts a
// partition takes, and at which part of the memory it may begin.
var profiles = []struct {
	name            string
	compute, memory int
	at              []int
}{
	{"1g.3gb", 1, 1, []int{0, 1, 2, 3, 4, 5, 6}},
	{"2g.6gb", 2, 2, []int{0, 2, 4}},
}

// device is a whole GPU or a partition, with the number of the GPU.
type device struct {
	dra.Device
	gpu int
}

// driver gives out the GPUs of one node.
type driver struct {
	node, cdi, sickFile string
	counters            []dra.CounterSet
	devices             []device
}

func main() {
	d := &driver{}
	flag.StringVar(&d.node, "node", "", "name of the node")
	flag.StringVar(&d.cdi, "cdi", "", "folder in which the container runtime looks for CDI files")
	flag.StringVar(&d.sickFile, "sick", "", "file with the UUID of a sick GPU in each line; there may be none")
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of the node's kubelet")
	product := flag.String("product", "", "name of the GPUs")
	memory := flag.String("memory", "", "memory of one GPU")
	version := flag.String("version", "", "version of the GPUs' driver: three numbers")
	flag.Parse()
	for gpu, id := range flag.Args() {
		d.addGPU(gpu, id, *product, resource.MustParse(*memory), *version)
	}
	log.Fatal(d.run(context.Background(), *kubeconfig))
}

// addGPU adds a GPU and its partitions, with the attributes of NVIDIA's driver.
func (d *driver) addGPU(gpu int, id, product string, memory resource.Quantity, version string) {
	name := fmt.Sprintf("gpu-%d", gpu)
	d.counters = append(d.counters, dra.CounterSet{Name: name, Counters: counters(computeParts, 0, memoryParts)})
	add := func(name string, own map[dra.QualifiedName]string, compute, at, parts int) {
		attributes := map[dra.QualifiedName]dra.DeviceAttribute{
			"productName":   {StringValue: &product},
			"driverVersion": {VersionValue: &version},
		}
		for key, value := range own {
			attributes[key] = dra.DeviceAttribute{StringValue: &value}
		}
		part := resource.NewQuantity(memory.Value()/memoryParts*int64(parts), resource.BinarySI)
		used := dra.DeviceCounterConsumption{CounterSet: d.counters[gpu].Name, Counters: counters(compute, at, parts)}
		d.devices = append(d.devices, device{gpu: gpu, Device: dra.Device{
			Name:             name,
			Attributes:       attributes,
			Capacity:         map[dra.QualifiedName]dra.DeviceCapacity{"memory": {Value: *part}},
			ConsumesCounters: []dra.DeviceCounterConsumption{used},
		}})
	}
	add(name, map[dra.QualifiedName]string{"type": "gpu", "uuid": id}, computeParts, 0, memoryParts)
	for _, one := range profiles {
		for _, at := range one.at {
			partition := fmt.Sprintf("%s-mig-%s-%d", name, strings.ReplaceAll(one.name, ".", "-"), at)
			own := "MIG-" + uuid.NewSHA1(uuid.NameSpaceOID, []byte(id+partition)).String()
			add(partition, map[dra.QualifiedName]string{
				"type": "mig", "uuid": own, "parentUUID": id, "profile": one.name,
			}, one.compute, at, one.memory)
		}
	}
}

// counters are so many parts of the processors of a GPU, and those of its memory from one on.
func counters(compute, at, parts int) map[string]dra.Counter {
	all := map[string]dra.Counter{"compute": {Value: *resource.NewQuantity(int64(compute), resource.DecimalSI)}}
	for part := at; part < at+parts; part++ {
		all[fmt.Sprintf("memory-%d", part)] = dra.Counter{Value: *resource.NewQuantity(1, resource.DecimalSI)}
	}
	return all
}

// run serves the kubelet, and publishes the GPUs once it knows this driver, and again whenever one is sick or well.
func (d *driver) run(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	own := filepath.Join(kubeletplugin.KubeletPluginsDir, driverName)
	for _, folder := range []string{own, kubeletplugin.KubeletRegistryDir, d.cdi} {
		if err := os.MkdirAll(folder, 0o750); err != nil {
			return err
		}
	}
	helper, err := kubeletplugin.Start(ctx, d,
		kubeletplugin.DriverName(driverName), kubeletplugin.NodeName(d.node), kubeletplugin.KubeClient(client))
	if err != nil {
		return err
	}
	var sick []string
	for isPublished := false; ; time.Sleep(look) {
		known, now := helper.RegistrationStatus(), d.sick()
		if known == nil || isPublished && slices.Equal(sick, now) {
			continue
		}
		if err := helper.PublishResources(ctx, d.resources(now)); err != nil {
			return err
		}
		log.Printf("%d devices are published, and these are sick: %v", len(d.devices), now)
		sick, isPublished = now, true
	}
}

func (d *driver) sick() []string {
	text, _ := os.ReadFile(d.sickFile)
	return strings.Fields(string(text))
}

// resources are the counters and the devices: Kubernetes takes them only in different slices of a pool.
func (d *driver) resources(sick []string) resourceslice.DriverResources {
	var devices []dra.Device
	for _, one := range d.devices {
		told := one.Device
		if slices.Contains(sick, uuidOf(one)) || slices.Contains(sick, uuidOf(d.wholeOf(one))) {
			told.Taints = []dra.DeviceTaint{{Key: driverName + "/sick", Effect: dra.DeviceTaintEffectNoSchedule}}
		}
		devices = append(devices, told)
	}
	pool := resourceslice.Pool{Slices: []resourceslice.Slice{{SharedCounters: d.counters}, {Devices: devices}}}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{d.node: pool}}
}

// PrepareResourceClaims writes a CDI file for each claim.
func (d *driver) PrepareResourceClaims(_ context.Context, claims []*dra.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		devices, err := d.prepare(claim)
		results[claim.UID] = kubeletplugin.PrepareResult{Devices: devices, Err: err}
	}
	return results, nil
}

// prepare makes a CDI device of each GPU of a claim. All of one request name all of its UUIDs, since the last one that
// the container runtime reads decides. There are no such GPUs on this machine, so each device file is /dev/null.
func (d *driver) prepare(claim *dra.ResourceClaim) ([]kubeletplugin.Device, error) {
	results := slices.Clone(claim.Status.Allocation.Devices.Results)
	results = slices.DeleteFunc(results, func(one dra.DeviceRequestAllocationResult) bool { return one.Driver != driverName })
	uuids := map[string][]string{}
	for _, result := range results {
		index := d.indexOf(result.Device)
		if index < 0 {
			return nil, fmt.Errorf("node %s has no device %s", d.node, result.Device)
		}
		uuids[result.Request] = append(uuids[result.Request], uuidOf(d.devices[index]))
	}
	var devices []kubeletplugin.Device
	var edits []object
	for _, result := range results {
		name := fmt.Sprintf("%s-%s", claim.UID, result.Device)
		variable := "NVIDIA_VISIBLE_DEVICES=" + strings.Join(uuids[result.Request], ",")
		var nodes []object
		for _, file := range append(slices.Clone(controlFiles), fmt.Sprintf("nvidia%d", d.devices[d.indexOf(result.Device)].gpu)) {
			nodes = append(nodes, object{"path": "/dev/" + file, "hostPath": "/dev/null"})
		}
		edits = append(edits, object{"name": name, "containerEdits": object{"env": []string{variable}, "deviceNodes": nodes}})
		devices = append(devices, kubeletplugin.Device{
			Requests:     []string{result.Request},
			PoolName:     result.Pool,
			DeviceName:   result.Device,
			CDIDeviceIDs: []string{cdiKind + "=" + name},
		})
	}
	return devices, d.writeCDI(claim.UID, edits)
}

// UnprepareResourceClaims removes the CDI files.
func (d *driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	results := map[types.UID]error{}
	for _, claim := range claims {
		results[claim.UID] = os.RemoveAll(d.cdiFile(claim.UID))
	}
	return results, nil
}

// HandleError logs what the helper tries again, and ends this program by what it does not.
func (d *driver) HandleError(_ context.Context, err error, message string) {
	if !errors.Is(err, kubeletplugin.ErrRecoverable) {
		log.Fatalf("%s: %v", message, err)
	}
	log.Printf("%s: %v", message, err)
}

func (d *driver) cdiFile(claim types.UID) string {
	return filepath.Join(d.cdi, fmt.Sprintf("%s-%s.json", driverName, claim))
}

// writeCDI puts a file of the Container Device Interface in its place whole.
func (d *driver) writeCDI(claim types.UID, devices []object) error {
	text, err := json.Marshal(object{"cdiVersion": "0.5.0", "kind": cdiKind, "devices": devices})
	if err != nil {
		return err
	}
	partial := d.cdiFile(claim) + ".partial"
	if err := os.WriteFile(partial, text, 0o600); err != nil {
		return err
	}
	return os.Rename(partial, d.cdiFile(claim))
}

func (d *driver) indexOf(name string) int {
	return slices.IndexFunc(d.devices, func(one device) bool { return one.Name == name })
}

// wholeOf is the GPU of a device.
func (d *driver) wholeOf(one device) device {
	return d.devices[slices.IndexFunc(d.devices, func(other device) bool { return other.gpu == one.gpu })]
}

func uuidOf(one device) string {
	return *one.Attributes["uuid"].StringValue
}

// Gives GPUs that do not exist to a kubelet by Dynamic Resource Allocation, as NVIDIA's driver
// (kubernetes-sigs/dra-driver-nvidia-gpu) gives real ones: a ResourceSlice with its attributes, and for each claim a CDI
// file with NVIDIA_VISIBLE_DEVICES and device files. A file names the GPUs that are sick: the slice taints them.
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

// driver gives out the GPUs of one node.
type driver struct {
	node, cdi, sickFile string
	devices             []dra.Device
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
	for index, uuid := range flag.Args() {
		d.devices = append(d.devices, deviceOf(index, uuid, *product, *memory, *version))
	}
	log.Fatal(d.run(context.Background(), *kubeconfig))
}

// deviceOf is a GPU with the attributes of NVIDIA's driver.
func deviceOf(index int, uuid, product, memory, version string) dra.Device {
	kind := "gpu"
	return dra.Device{
		Name: fmt.Sprintf("gpu-%d", index),
		Attributes: map[dra.QualifiedName]dra.DeviceAttribute{
			"type":          {StringValue: &kind},
			"uuid":          {StringValue: &uuid},
			"productName":   {StringValue: &product},
			"driverVersion": {VersionValue: &version},
		},
		Capacity: map[dra.QualifiedName]dra.DeviceCapacity{"memory": {Value: resource.MustParse(memory)}},
	}
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
		log.Printf("%d GPUs are published, and these are sick: %v", len(d.devices), now)
		sick, isPublished = now, true
	}
}

func (d *driver) sick() []string {
	text, _ := os.ReadFile(d.sickFile)
	return strings.Fields(string(text))
}

func (d *driver) resources(sick []string) resourceslice.DriverResources {
	devices := slices.Clone(d.devices)
	for index, device := range devices {
		if slices.Contains(sick, uuidOf(device)) {
			devices[index].Taints = []dra.DeviceTaint{{Key: driverName + "/sick", Effect: dra.DeviceTaintEffectNoSchedule}}
		}
	}
	pool := resourceslice.Pool{Slices: []resourceslice.Slice{{Devices: devices}}}
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
		for _, file := range append(slices.Clone(controlFiles), fmt.Sprintf("nvidia%d", d.indexOf(result.Device))) {
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
	return slices.IndexFunc(d.devices, func(device dra.Device) bool { return device.Name == name })
}

func uuidOf(device dra.Device) string {
	return *device.Attributes["uuid"].StringValue
}

// Offers GPUs that do not exist to a kubelet, as NVIDIA's device plugin (NVIDIA/k8s-device-plugin, internal/plugin)
// offers real ones: a socket and a registration for each resource, GPUs by UUID, NVIDIA_VISIBLE_DEVICES and device files
// in the container. A file names the GPUs that are sick.
//
//	device-plugin -sick FILE nvidia.com/gpu=GPU-a,GPU-b nvidia.com/mig-1g.10gb=MIG-c
//
// A replica of a shared GPU has its number behind the UUID, as NVIDIA's has: GPU-a::0.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// look is the time between two looks at the file of sick GPUs and at the sockets.
const look = 200 * time.Millisecond

// controlFiles are for every container with a GPU.
var controlFiles = []string{"nvidiactl", "nvidia-modeset", "nvidia-uvm", "nvidia-uvm-tools"}

// server offers the devices of one resource.
type server struct {
	plugin.UnimplementedDevicePluginServer
	resource string
	ids      []string
	sickFile string
}

func main() {
	sickFile := flag.String("sick", "", "file with the UUID of a sick GPU in each line; there may be none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ended := make(chan error)
	for _, argument := range flag.Args() {
		resource, ids, isPair := strings.Cut(argument, "=")
		if !isPair || ids == "" {
			log.Fatalf("%q is no resource with its devices: expected NAME=ID,ID", argument)
		}
		one := &server{resource: resource, ids: strings.Split(ids, ","), sickFile: *sickFile}
		go func() { ended <- one.run(ctx) }()
	}
	for range flag.Args() {
		if err := <-ended; err != nil {
			log.Fatal(err)
		}
	}
}

// socket is the path of this resource's socket in the kubelet's folder.
func (s *server) socket() string {
	return filepath.Join(plugin.DevicePluginPath, strings.ReplaceAll(s.resource, "/", "-")+".sock")
}

// run serves and registers anew each time a kubelet starts: it removes all sockets of its folder then.
func (s *server) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if !exists(plugin.KubeletSocket) {
			pause(ctx)
			continue
		}
		if err := s.serve(ctx); err != nil {
			return err
		}
	}
	return nil
}

// serve offers the devices until the kubelet removes the socket. A kubelet that cannot be reached is no error.
func (s *server) serve(ctx context.Context) error {
	if err := os.Remove(s.socket()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", s.socket())
	if err != nil {
		return err
	}
	served := grpc.NewServer()
	plugin.RegisterDevicePluginServer(served, s)
	go func() { _ = served.Serve(listener) }()
	defer served.Stop()
	for isKnown := false; ctx.Err() == nil && exists(s.socket()); pause(ctx) {
		if isKnown {
			continue
		}
		if err := s.register(ctx); err != nil {
			log.Printf("%s is not registered yet: %v", s.resource, err)
			continue
		}
		isKnown = true
		log.Printf("%s is registered with %d devices", s.resource, len(s.ids))
	}
	return nil
}

func (s *server) register(ctx context.Context) error {
	connection, err := grpc.NewClient("unix://"+plugin.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err = plugin.NewRegistrationClient(connection).Register(limited, &plugin.RegisterRequest{
		Version:      plugin.Version,
		Endpoint:     filepath.Base(s.socket()),
		ResourceName: s.resource,
	})
	return err
}

func (s *server) GetDevicePluginOptions(context.Context, *plugin.Empty) (*plugin.DevicePluginOptions, error) {
	return &plugin.DevicePluginOptions{}, nil
}

// ListAndWatch sends all devices, and again whenever another one is sick or well.
func (s *server) ListAndWatch(_ *plugin.Empty, stream plugin.DevicePlugin_ListAndWatchServer) error {
	var sent []*plugin.Device
	for stream.Context().Err() == nil {
		devices := s.devices()
		if !slices.EqualFunc(sent, devices, func(a, b *plugin.Device) bool { return a.Health == b.Health }) {
			if err := stream.Send(&plugin.ListAndWatchResponse{Devices: devices}); err != nil {
				return err
			}
			sent = devices
		}
		pause(stream.Context())
	}
	return nil
}

func (s *server) devices() []*plugin.Device {
	text, _ := os.ReadFile(s.sickFile)
	sick := strings.Fields(string(text))
	devices := make([]*plugin.Device, 0, len(s.ids))
	for _, id := range s.ids {
		health := plugin.Healthy
		if slices.Contains(sick, uuidOf(id)) {
			health = plugin.Unhealthy
		}
		devices = append(devices, &plugin.Device{ID: id, Health: health})
	}
	return devices
}

// Allocate answers for each container with what NVIDIA's plugin sets: the UUIDs, and the device files. There are no
// such devices on this machine, so each file is /dev/null.
func (s *server) Allocate(_ context.Context, asked *plugin.AllocateRequest) (*plugin.AllocateResponse, error) {
	answer := &plugin.AllocateResponse{}
	for _, container := range asked.ContainerRequests {
		var uuids []string
		files := slices.Clone(controlFiles)
		for _, id := range container.DevicesIds {
			if !slices.Contains(s.ids, id) {
				return nil, fmt.Errorf("invalid allocation request for %q: unknown device: %s", s.resource, id)
			}
			uuid := uuidOf(id)
			if slices.Contains(uuids, uuid) {
				continue
			}
			uuids = append(uuids, uuid)
			files = append(files, fmt.Sprintf("nvidia%d", slices.Index(s.uuids(), uuid)))
		}
		one := &plugin.ContainerAllocateResponse{Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(uuids, ",")}}
		for _, file := range files {
			one.Devices = append(one.Devices, &plugin.DeviceSpec{HostPath: "/dev/null", ContainerPath: "/dev/" + file, Permissions: "rw"})
		}
		answer.ContainerResponses = append(answer.ContainerResponses, one)
	}
	return answer, nil
}

// uuids are those of the GPUs, each once.
func (s *server) uuids() []string {
	var uuids []string
	for _, id := range s.ids {
		if uuid := uuidOf(id); !slices.Contains(uuids, uuid) {
			uuids = append(uuids, uuid)
		}
	}
	return uuids
}

func uuidOf(id string) string {
	uuid, _, _ := strings.Cut(id, "::")
	return uuid
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(look):
	}
}

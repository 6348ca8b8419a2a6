// Enforces NetworkPolicies on the node of the end-to-end test: kube-router's controller for them, alone.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/cloudnativelabs/kube-router/v2/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/v2/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/v2/pkg/options"
	"github.com/cloudnativelabs/kube-router/v2/pkg/svcip"
	"github.com/spf13/pflag"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	config := options.NewKubeRouterConfig()
	config.AddFlags(pflag.CommandLine)
	pflag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, config); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, config *options.KubeRouterConfig) error {
	access, err := clientcmd.BuildConfigFromFlags("", config.Kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return err
	}
	ranges, err := svcip.NewValidator(svcip.Config{ClusterIPCIDRs: config.ClusterIPCIDRs, EnableIPv4: true})
	if err != nil {
		return err
	}
	tables, sets, err := netpol.NewIPTablesHandlers(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	namespaces := factory.Core().V1().Namespaces().Informer()
	policies := factory.Networking().V1().NetworkPolicies().Informer()
	var lock sync.Mutex
	controller, err := netpol.NewNetworkPolicyController(client, config, pods, policies, namespaces, &lock, nil, tables, sets, ranges)
	if err != nil {
		return err
	}
	handlers := map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		pods:       controller.PodEventHandler,
		namespaces: controller.NamespaceEventHandler,
		policies:   controller.NetworkPolicyEventHandler,
	}
	for informer, handler := range handlers {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	heartbeats := make(chan *healthcheck.ControllerHeartbeat, 1)
	go func() {
		for range heartbeats {
		}
	}()
	var running sync.WaitGroup
	running.Add(1)
	go controller.Run(heartbeats, ctx.Done(), &running)
	running.Wait()
	return nil
}

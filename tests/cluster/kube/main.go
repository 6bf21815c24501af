// Command kube is every Kubernetes component in one binary, chosen by the name it is called by.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	components := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllermanager.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"kube-proxy":              proxy.NewProxyCommand,
		"kubelet":                 newKubeletCommand,
		"kubectl":                 nil,
	}
	component := filepath.Base(os.Args[0])
	if _, known := components[component]; !known {
		fmt.Fprintf(os.Stderr, "%s: link this program to one of these names: %s\n",
			component, strings.Join(slices.Sorted(maps.Keys(components)), " "))
		os.Exit(2)
	}
	if component == "kubectl" {
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err)
		}
		return
	}
	os.Exit(cli.Run(components[component]()))
}

func newKubeletCommand() *cobra.Command {
	switch command := any(kubelet.NewKubeletCommand).(type) {
	case func(context.Context) *cobra.Command:
		return command(context.Background())
	case func() *cobra.Command: // Kubernetes 1.30
		return command()
	}
	panic("this Kubernetes makes its kubelet in another way")
}

package agent

import (
	"maps"
	"net"
	"os"
	"os/user"
	"path/filepath"
	goruntime "runtime"
	"slices"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podkeeper/podkeeper/node/kernel"
	"github.com/podkeeper/podkeeper/node/podlog"
	"github.com/podkeeper/podkeeper/node/volume"
	"github.com/podkeeper/podkeeper/pod"
	"github.com/podkeeper/podkeeper/reconcile"
	"github.com/podkeeper/podkeeper/runtime"
	"github.com/podkeeper/podkeeper/runtime/credential"
)

// logLinks keeps the links of log shippers.
type logLinks struct{ cfg podlog.Config }

func (l logLinks) Link(c runtime.Container) error {
	return podlog.Ensure(l.cfg, link(c))
}

func link(c runtime.Container) podlog.Link {
	return podlog.Link{Key: c.Key, UID: c.UID, Container: c.Name, Attempt: c.Attempt, ID: c.ID, LogPath: c.LogPath}
}

func (l logLinks) Unlink(key pod.Key, uid types.UID) error { return podlog.RemovePod(l.cfg, key, uid) }

// hardware returns what pods may be told about the machine; what it does not tell
// is 0.
func hardware(cfg Config) reconcile.Node {
	node := reconcile.Node{
		Name: cfg.NodeName, RootDir: cfg.RootDir, CPUs: int64(goruntime.NumCPU()),
		Addresses: cfg.NodeIPs, ClusterDNS: cfg.ClusterDNS, ResolvConf: cfg.ResolvConf,
		PodPIDs: cfg.PodPIDs, NoCPUQuota: cfg.Cgroups.NoCPUQuota, CPUPeriod: cfg.Cgroups.CPUPeriod, SCTP: kernel.KnowsSCTP(), HugePages: kernel.HugePages("/sys/kernel/mm/hugepages"),
	}
	host := volume.Host{RootDir: cfg.RootDir}
	if err := host.Quotas(); err != nil {
		node.NoQuotas = err.Error()
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err == nil {
		node.Memory = int64(info.Totalram) * int64(info.Unit)
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(cfg.RootDir, &disk); err == nil {
		node.Storage = int64(disk.Blocks) * disk.Bsize
	}
	node.Labels = nodeLabels(cfg)
	node.Allocatable = reconcile.Allocatable{CPU: 1000 * node.CPUs, Memory: node.Memory, Storage: node.Storage, Pods: cfg.Admission.MaxPods}
	return node
}

// nodeLabels returns what nodes are chosen by, as a kubelet names it; the user's win.
func nodeLabels(cfg Config) map[string]string {
	labels := map[string]string{v1.LabelHostname: cfg.NodeName}
	for _, prefix := range []string{"kubernetes.io/", "beta.kubernetes.io/"} {
		labels[prefix+"os"], labels[prefix+"arch"] = goruntime.GOOS, goruntime.GOARCH
	}
	maps.Copy(labels, cfg.Admission.Labels)
	return labels
}

// credentials are where the kubelet and docker look for logins to registries: the
// root dir, and the docker configuration of the user that the agent runs as.
func credentials(rootDir string) credential.Node {
	dir := os.Getenv("DOCKER_CONFIG")
	if dir == "" {
		home := os.Getenv("HOME")
		if home == "" { // as for a service
			if me, err := user.Current(); err == nil {
				home = me.HomeDir
			}
		}
		dir = filepath.Join(home, ".docker")
	}
	return credential.Node{
		Text:  os.Getenv("DOCKER_AUTH_CONFIG"),
		Files: []string{filepath.Join(rootDir, "config.json"), filepath.Join(dir, "config.json")},
	}
}

// machineAddresses returns the machine's first global address of each family,
// IPv4 first.
func machineAddresses() []string {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var four, six []string
	for _, a := range addrs {
		switch ip, ok := a.(*net.IPNet); {
		case !ok || !ip.IP.IsGlobalUnicast():
		case ip.IP.To4() != nil:
			four = append(four, ip.IP.String())
		default:
			six = append(six, ip.IP.String())
		}
	}
	return slices.Concat(four[:min(len(four), 1)], six[:min(len(six), 1)])
}

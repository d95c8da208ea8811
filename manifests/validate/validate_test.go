package validate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/podkeeper/podkeeper/manifests/validate"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// good is a pod of one container as package defaults leaves it.
func good() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec: v1.PodSpec{
			RestartPolicy:                 v1.RestartPolicyAlways,
			DNSPolicy:                     v1.DNSClusterFirst,
			TerminationGracePeriodSeconds: new(int64(30)),
			SecurityContext:               &v1.PodSecurityContext{},
			Containers:                    []v1.Container{container("app")},
		},
	}
}

func container(name string) v1.Container {
	return v1.Container{
		Name:                     name,
		Image:                    "busybox:stable",
		ImagePullPolicy:          v1.PullIfNotPresent,
		TerminationMessagePath:   v1.TerminationMessagePathDefault,
		TerminationMessagePolicy: v1.TerminationMessageReadFile,
	}
}

func list(items map[v1.ResourceName]string) v1.ResourceList {
	all := v1.ResourceList{}
	for name, quantity := range items {
		all[name] = resource.MustParse(quantity)
	}
	return all
}

func tcpProbe(port intstr.IntOrString) *v1.Probe {
	return &v1.Probe{
		ProbeHandler:  v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: port}},
		PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
	}
}

func hostPath(path string) v1.Volume {
	return v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: path, Type: new(v1.HostPathUnset)}}}
}

// judge returns what is wrong with the pod, in the order of the text.
func judge(p *v1.Pod) []string {
	var texts []string
	for _, err := range validate.Pod(p) {
		texts = append(texts, err.Error())
	}
	slices.Sort(texts)
	return texts
}

func TestCasesFromTheField(t *testing.T) {
	const c0 = "spec.containers[0]."
	tests := map[string]struct {
		edit func(p *v1.Pod, c *v1.Container)
		want []string
	}{
		"a pod with its defaults is good": {edit: func(*v1.Pod, *v1.Container) {}},

		"C024: a variable whose name begins with a digit": {
			edit: func(_ *v1.Pod, c *v1.Container) { c.Env = []v1.EnvVar{{Name: "1X"}} },
			want: []string{c0 + `env[0].name: Invalid value: "1X": must be letters, digits, '_', '-' and '.' without a digit first, and not begin with '..'`},
		},
		"C024: a variable whose name has a space": {
			edit: func(_ *v1.Pod, c *v1.Container) { c.Env = []v1.EnvVar{{Name: "A B"}} },
			want: []string{c0 + `env[0].name: Invalid value: "A B": must be letters, digits, '_', '-' and '.' without a digit first, and not begin with '..'`},
		},
		"C024: a variable whose name has an equals sign": {
			edit: func(_ *v1.Pod, c *v1.Container) { c.Env = []v1.EnvVar{{Name: "A=B"}} },
			want: []string{c0 + `env[0].name: Invalid value: "A=B": must be letters, digits, '_', '-' and '.' without a digit first, and not begin with '..'`},
		},
		"C024: dots and dashes in the name of a variable are good": {
			edit: func(_ *v1.Pod, c *v1.Container) { c.Env = []v1.EnvVar{{Name: "my.var-x", Value: "1"}} },
		},

		"C028: requests above limits": {
			edit: func(_ *v1.Pod, c *v1.Container) {
				c.Resources.Requests = list(map[v1.ResourceName]string{"cpu": "2"})
				c.Resources.Limits = list(map[v1.ResourceName]string{"cpu": "500m"})
			},
			want: []string{c0 + `resources.requests: Invalid value: "2": must not be above the limit of cpu, which is 500m`},
		},
		"C028: less than no cpu": {
			edit: func(_ *v1.Pod, c *v1.Container) {
				c.Resources.Requests = list(map[v1.ResourceName]string{"cpu": "-1"})
			},
			want: []string{c0 + `resources.requests[cpu]: Invalid value: "-1": must not be negative`},
		},
		"C028: a resource that nobody knows": {
			edit: func(_ *v1.Pod, c *v1.Container) {
				c.Resources.Requests = list(map[v1.ResourceName]string{"memroy": "1Gi"})
			},
			want: []string{
				c0 + `resources.requests[memroy]: Invalid value: "memroy": must be a resource that Kubernetes knows, or one with a domain`,
				c0 + `resources.requests[memroy]: Invalid value: "memroy": must be one that a container can have: cpu, memory, ephemeral-storage or hugepages-<size>`,
			},
		},
		"C028: the smallest cpu, requests alone and limits alone are good": {
			edit: func(p *v1.Pod, c *v1.Container) {
				c.Resources.Requests = list(map[v1.ResourceName]string{"cpu": "1m"})
				c.Resources.Limits = list(map[v1.ResourceName]string{"cpu": "1m"})
				requests, limits := container("requests"), container("limits")
				requests.Resources.Requests = list(map[v1.ResourceName]string{"cpu": "250m", "memory": "32Mi"})
				limits.Resources.Limits = list(map[v1.ResourceName]string{"cpu": "500m", "memory": "64Mi"})
				p.Spec.Containers = append(p.Spec.Containers, requests, limits)
			},
		},

		"C068: a host path that climbs": {
			edit: func(p *v1.Pod, _ *v1.Container) { p.Spec.Volumes = []v1.Volume{hostPath("/a/../b")} },
			want: []string{`spec.volumes[0].hostPath.path: Invalid value: "/a/../b": must not have '..' as an element`},
		},
		"C068: two dots in the name of a file are good": {
			edit: func(p *v1.Pod, _ *v1.Container) { p.Spec.Volumes = []v1.Volume{hostPath("/a/..b/c..")} },
		},

		"C071: an emptyDir of less than nothing": {
			edit: func(p *v1.Pod, _ *v1.Container) {
				p.Spec.Volumes = []v1.Volume{{Name: "m", VolumeSource: v1.VolumeSource{
					EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory, SizeLimit: new(resource.MustParse("-1"))},
				}}}
			},
			want: []string{`spec.volumes[0].emptyDir.sizeLimit: Forbidden: must not be negative`},
		},

		"C080: a host port used twice": {
			edit: func(_ *v1.Pod, c *v1.Container) {
				c.Ports = []v1.ContainerPort{
					{ContainerPort: 80, HostPort: 8080, Protocol: v1.ProtocolTCP},
					{ContainerPort: 81, HostPort: 8080, Protocol: v1.ProtocolTCP},
				}
			},
			want: []string{c0 + `ports[1].hostPort: Duplicate value: "TCP//8080"`},
		},
		"C080: the same number for TCP and UDP, and on two addresses, is good": {
			edit: func(_ *v1.Pod, c *v1.Container) {
				c.Ports = []v1.ContainerPort{
					{Name: "dns-tcp", ContainerPort: 53, HostPort: 5353, Protocol: v1.ProtocolTCP},
					{Name: "dns-udp", ContainerPort: 53, HostPort: 5353, Protocol: v1.ProtocolUDP},
					{ContainerPort: 53, HostPort: 5353, HostIP: "127.0.0.1", Protocol: v1.ProtocolTCP},
				}
			},
		},

		"C087: dnsPolicy None without a dnsConfig": {
			edit: func(p *v1.Pod, _ *v1.Container) { p.Spec.DNSPolicy = v1.DNSNone },
			want: []string{`spec.dnsConfig: Required value: must be set where dnsPolicy is None`},
		},
		"C087: more nameservers than a resolver takes": {
			edit: func(p *v1.Pod, _ *v1.Container) {
				p.Spec.DNSConfig = &v1.PodDNSConfig{Nameservers: []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"}}
			},
			want: []string{`spec.dnsConfig.nameservers: Invalid value: ["192.0.2.1","192.0.2.2","192.0.2.3","192.0.2.4"]: must not have more than 3, has 4`},
		},
		"C087: the name of a nameserver": {
			edit: func(p *v1.Pod, _ *v1.Container) {
				p.Spec.DNSConfig = &v1.PodDNSConfig{Nameservers: []string{"dns.local"}}
			},
			want: []string{`spec.dnsConfig.nameservers[0]: Invalid value: "dns.local": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`},
		},
		"C087: nameservers, searches and options with None are good": {
			edit: func(p *v1.Pod, _ *v1.Container) {
				p.Spec.DNSPolicy = v1.DNSNone
				p.Spec.DNSConfig = &v1.PodDNSConfig{
					Nameservers: []string{"192.0.2.1", "192.0.2.2"}, Searches: []string{"a.test", "b.test"},
					Options: []v1.PodDNSConfigOption{{Name: "ndots", Value: new("2")}, {Name: "edns0"}},
				}
			},
		},

		"C088: a part of a name that begins with a dash": {
			edit: func(p *v1.Pod, _ *v1.Container) { p.Name = "etcd.compute.-internal" },
			want: []string{`metadata.name: Invalid value: "etcd.compute.-internal": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		},
		"C088: a name of 70 characters is good": {
			edit: func(p *v1.Pod, _ *v1.Container) { p.Name = strings.Repeat("a", 62) + "-bbbbbbb" },
		},
		"C088: a hostname of 64 characters": {
			edit: func(p *v1.Pod, _ *v1.Container) { p.Spec.Hostname = strings.Repeat("a", 64) },
			want: []string{`spec.hostname: Invalid value: "` + strings.Repeat("a", 64) + `": must be no more than 63 characters`},
		},

		"C095: port 0 of a probe": {
			edit: func(_ *v1.Pod, c *v1.Container) { c.LivenessProbe = tcpProbe(intstr.FromInt32(0)) },
			want: []string{c0 + `livenessProbe.tcpSocket.port: Invalid value: 0: must be between 1 and 65535, inclusive`},
		},
		"C095: a port of a probe in quotes is good": {
			edit: func(_ *v1.Pod, c *v1.Container) { c.ReadinessProbe = tcpProbe(intstr.FromString("80")) },
		},
		"C095: the name of a port that only another container has is good": {
			edit: func(_ *v1.Pod, c *v1.Container) { c.ReadinessProbe = tcpProbe(intstr.FromString("nope")) },
		},
		"C095: a port's name of more than 15 characters": {
			edit: func(_ *v1.Pod, c *v1.Container) {
				c.Ports = []v1.ContainerPort{{Name: "a-very-long-name", ContainerPort: 80, Protocol: v1.ProtocolTCP}}
			},
			want: []string{c0 + `ports[0].name: Invalid value: "a-very-long-name": must be no more than 15 characters`},
		},
		"C095: a port's name used twice in one container": {
			edit: func(_ *v1.Pod, c *v1.Container) {
				c.Ports = []v1.ContainerPort{
					{Name: "http", ContainerPort: 80, Protocol: v1.ProtocolTCP}, {Name: "http", ContainerPort: 81, Protocol: v1.ProtocolTCP},
				}
			},
			want: []string{c0 + `ports[1].name: Duplicate value: "http"`},
		},

		"C135: an image with spaces around it": {
			edit: func(_ *v1.Pod, c *v1.Container) { c.Image = " nginx " },
			want: []string{c0 + `image: Invalid value: " nginx ": must not begin or end with white space`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := good()
			test.edit(p, &p.Spec.Containers[0])
			before := p.DeepCopy()
			if diff := cmp.Diff(test.want, judge(p)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, p); diff != "" {
				t.Errorf("the pod was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestErrorsComeInTheSameOrderEachTime(t *testing.T) {
	p := good()
	p.Labels = map[string]string{"a b": "", "c d": "", "e f": "", "g h": ""}
	p.Annotations = map[string]string{"a b": "", "c d": "", "e f": "", "g h": ""}
	p.Spec.Containers[0].Resources.Limits = list(map[v1.ResourceName]string{"a": "-1", "b": "-1", "c": "-1", "d": "-1"})
	want := validate.Pod(p).ToAggregate().Error()
	for range 20 {
		if diff := cmp.Diff(want, validate.Pod(p).ToAggregate().Error()); diff != "" {
			t.Fatalf("errors (-first +later):\n%s", diff)
		}
	}
}

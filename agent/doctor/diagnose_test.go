package doctor_test

import (
	"strings"
	"testing"

	"github.com/podkeeper/podkeeper/agent/doctor"
	"github.com/podkeeper/podkeeper/runtime"
)

// healthy is a machine that lacks nothing.
func healthy() doctor.Facts {
	return doctor.Facts{
		CanProtect: true,
		Engine: doctor.Engine{Address: "unix:///e", Features: runtime.Features{
			Version: "28.1", AppArmor: true, SELinux: true, Seccomp: true, OwnUsers: true, ImageMounts: true, RecursiveReadOnly: true,
			CgroupDriver: runtime.Systemd, CgroupVersion: 2,
		}},
		Cgroups:   doctor.Cgroups{Version: 2, Systemd: true},
		Ports:     []doctor.Port{{Port: 10250}},
		Inotify:   doctor.Inotify{Instances: 128, Used: 3, Watches: 65536},
		Disks:     []doctor.Disk{{Of: "the root dir", Path: "/r", Available: 50 << 30, Capacity: 100 << 30, InodesAvailable: 50, InodesTotal: 100}},
		SCTP:      true,
		HugePages: map[string]int64{"hugepages-2Mi": 4 << 20, "hugepages-1Gi": 0},
	}
}

// A machine that lacks nothing has nothing to cure; each fact alone changes its
// own check, and that one alone.
func TestDiagnose(t *testing.T) {
	well := map[string]doctor.Finding{}
	for _, f := range doctor.Diagnose(healthy()) {
		if f.Verdict != doctor.OK || f.Cure != "" || f.Message == "" {
			t.Errorf("a healthy machine has %+v", f)
		}
		well[f.Check] = f
	}
	for name, c := range map[string]struct {
		change  func(*doctor.Facts)
		check   string
		verdict doctor.Verdict
		says    string // in the message
		cure    string // a part of it, "" for none
	}{
		"not root":                  {func(f *doctor.Facts) { f.UID = 1000 }, "user", doctor.Warn, "as user 1000", "root"},
		"root that may not protect": {func(f *doctor.Facts) { f.CanProtect = false }, "user", doctor.Warn, "oom_score_adj", "CAP_SYS_RESOURCE"},
		"no engine":                 {func(f *doctor.Facts) { f.Engine.Problem = "connection refused" }, "engine", doctor.Fail, "unix:///e does not answer: connection refused", "start docker"},
		"an engine of others":       {func(f *doctor.Facts) { f.Engine.Problem, f.Engine.Denied = "denied", true }, "engine", doctor.Fail, "may not be spoken to", "group docker"},
		"no cgroups":                {func(f *doctor.Facts) { f.Cgroups.Problem = "nothing there" }, "cgroups", doctor.Fail, "nothing there", "--cgroups-per-qos=false"},
		"a controller is off":       {func(f *doctor.Facts) { f.Cgroups.Lacks = []doctor.Lack{{"memory", "no limits"}} }, "cgroups", doctor.Fail, "controller memory is missing: no limits", "cgroup_enable=memory"},
		"another controller is off": {func(f *doctor.Facts) { f.Cgroups.Lacks = []doctor.Lack{{"pids", "no limits"}} }, "cgroups", doctor.Fail, "controller pids is missing", "delegated"},
		"cgroupfs beside systemd":   {func(f *doctor.Facts) { f.Engine.Features.CgroupDriver = runtime.Cgroupfs }, "cgroup driver", doctor.Warn, "systemd runs the machine", "native.cgroupdriver=systemd"},
		"no word of cgroups":        {func(f *doctor.Facts) { f.Engine.Features.CgroupDriver = "" }, "cgroup driver", doctor.Warn, "does not say", "docker info"},
		"a setting":                 {func(f *doctor.Facts) { f.Settings = []doctor.Setting{{Name: "vm.x", Have: 0, Want: 1}} }, "kernel settings", doctor.Warn, "vm.x is 0, a kubelet has 1", "sysctl -w vm.x=1"},
		"a hidden setting": {func(f *doctor.Facts) {
			f.Settings = []doctor.Setting{{Name: "vm.x", Have: -1, Want: 1, Problem: "denied"}}
		}, "kernel settings", doctor.Warn, "cannot be read: denied", "sysctl vm.x"},
		"a port that a kubelet has": {func(f *doctor.Facts) { f.Ports[0] = doctor.Port{Port: 10250, Taken: true, Process: "kubelet", PID: 7} }, "port 10250", doctor.Warn, "in use by kubelet (process 7)", "stop it"},
		"a port of who knows whom":  {func(f *doctor.Facts) { f.Ports[0] = doctor.Port{Port: 10250, Taken: true} }, "port 10250", doctor.Warn, "may not be seen", "ss -ltnp"},
		"a port that our agent has": {func(f *doctor.Facts) {
			f.Ports[0] = doctor.Port{Port: 10250, Taken: true, Process: "podkeeper", PID: 7}
		}, "port 10250", doctor.OK, "served by podkeeper (process 7)", ""},
		"no inotify left":              {func(f *doctor.Facts) { f.Inotify.Problem = "too many open files" }, "inotify", doctor.Warn, "limit 128", "max_user_instances"},
		"hardly any inotify left":      {func(f *doctor.Facts) { f.Inotify.Used = 116 }, "inotify", doctor.Warn, "116 of 128", "max_user_instances"},
		"some inotify left":            {func(f *doctor.Facts) { f.Inotify.Used = 115 }, "inotify", doctor.OK, "115 of 128", ""},
		"inotify of others":            {func(f *doctor.Facts) { f.Inotify.Used = -1 }, "inotify", doctor.OK, "128 instances", ""},
		"few watches":                  {func(f *doctor.Facts) { f.Inotify.Watches = 8191 }, "inotify", doctor.Warn, "8191 watches", "max_user_watches"},
		"a full disk":                  {func(f *doctor.Facts) { f.Disks[0].Available = 256<<20 - 1 }, "disk of the root dir", doctor.Fail, "256.0 MiB of 100.0 GiB", "make room"},
		"a small disk with just room":  {func(f *doctor.Facts) { f.Disks[0].Available, f.Disks[0].Capacity = 256<<20, 1<<30 }, "disk of the root dir", doctor.OK, "256.0 MiB of 1.0 GiB", ""},
		"a disk that is nearly full":   {func(f *doctor.Facts) { f.Disks[0].Available = 10<<30 - 1 }, "disk of the root dir", doctor.Warn, "pods are evicted", "make room"},
		"a disk of tiny files":         {func(f *doctor.Facts) { f.Disks[0].InodesAvailable = 4 }, "disk of the root dir", doctor.Warn, "4 of 100 inodes", "inodes"},
		"a disk without inodes":        {func(f *doctor.Facts) { f.Disks[0].InodesAvailable, f.Disks[0].InodesTotal = 0, 0 }, "disk of the root dir", doctor.OK, "50.0 GiB", ""},
		"a hidden disk":                {func(f *doctor.Facts) { f.Disks[0].Problem = "denied" }, "disk of the root dir", doctor.Warn, "/r cannot be looked at: denied", "df /r"},
		"swap":                         {func(f *doctor.Facts) { f.Swap = 3 << 30 }, "swap", doctor.Warn, "3.0 GiB", "swapoff"},
		"no AppArmor":                  {func(f *doctor.Facts) { f.Engine.Features.AppArmor = false }, "AppArmor", doctor.OK, "none", "apparmor"},
		"no SELinux":                   {func(f *doctor.Facts) { f.Engine.Features.SELinux = false }, "SELinux", doctor.OK, "none", "selinux-enabled"},
		"no seccomp":                   {func(f *doctor.Facts) { f.Engine.Features.Seccomp = false }, "seccomp", doctor.Warn, "none", "seccomp"},
		"no mapped users":              {func(f *doctor.Facts) { f.Engine.Features.OwnUsers = false }, "user namespaces", doctor.OK, "none", "userns-remap"},
		"no image volumes":             {func(f *doctor.Facts) { f.Engine.Features.ImageMounts = false }, "image volumes", doctor.OK, "none", "28"},
		"no recursive read-only":       {func(f *doctor.Facts) { f.Engine.Features.RecursiveReadOnly = false }, "recursive read-only", doctor.OK, "none", "25"},
		"no SCTP":                      {func(f *doctor.Facts) { f.SCTP = false }, "SCTP", doctor.OK, "none", "module sctp"},
		"no quotas":                    {func(f *doctor.Facts) { f.NoQuotas = "it is a tmpfs" }, "project quotas", doctor.OK, "it is a tmpfs", "prjquota"},
		"huge pages of a size, unused": {func(f *doctor.Facts) { f.HugePages = map[string]int64{"hugepages-2Mi": 0} }, "huge pages", doctor.OK, "none", "nr_hugepages"},
	} {
		t.Run(name, func(t *testing.T) {
			facts := healthy()
			c.change(&facts)
			found := false
			for _, f := range doctor.Diagnose(facts) {
				if f.Check != c.check {
					if f != well[f.Check] {
						t.Errorf("it also changed %+v", f)
					}
					continue
				}
				found = true
				if f.Verdict != c.verdict || !strings.Contains(f.Message, c.says) || (c.cure == "") != (f.Cure == "") || !strings.Contains(f.Cure, c.cure) {
					t.Errorf("got %+v, want %s, %q, cure %q", f, c.verdict, c.says, c.cure)
				}
			}
			if !found {
				t.Errorf("no finding for %s", c.check)
			}
		})
	}
}

// Of an engine that does not answer nothing is said but that.
func TestUnknownEngine(t *testing.T) {
	facts := healthy()
	facts.Engine = doctor.Engine{Address: "unix:///e", Problem: "down"}
	for _, f := range doctor.Diagnose(facts) {
		switch f.Check {
		case "cgroup driver", "seccomp", "AppArmor", "SELinux", "user namespaces", "image volumes", "recursive read-only":
			t.Errorf("%+v, without an engine that says so", f)
		}
	}
}

func TestWorst(t *testing.T) {
	of := func(list ...doctor.Verdict) (found []doctor.Finding) {
		for _, v := range list {
			found = append(found, doctor.Finding{Verdict: v})
		}
		return found
	}
	for name, c := range map[string]struct {
		list []doctor.Finding
		want doctor.Verdict
	}{
		"nothing":        {nil, doctor.OK},
		"well":           {of(doctor.OK, doctor.OK), doctor.OK},
		"warned":         {of(doctor.OK, doctor.Warn, doctor.OK), doctor.Warn},
		"failed, warned": {of(doctor.Fail, doctor.Warn, doctor.OK), doctor.Fail},
		"warned, failed": {of(doctor.Warn, doctor.Fail), doctor.Fail},
	} {
		if got := doctor.Worst(c.list); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podkeeper/podkeeper/runtime"
)

// Verdict is what a check comes to.
type Verdict string

// The verdicts.
const (
	// OK: nothing to do. What a finding says beside may still be of use.
	OK Verdict = "ok"
	// Warn: pods run, but not as well as they could, or not all of them.
	Warn Verdict = "warn"
	// Fail: no pods run.
	Fail Verdict = "fail"
)

// Finding is what one check found. Cure is what to do about it, "" where there is
// nothing.
type Finding struct {
	Check   string  `json:"check"`
	Verdict Verdict `json:"verdict"`
	Message string  `json:"message"`
	Cure    string  `json:"cure"`
}

// Diagnose judges the facts, in an order that is always the same.
func Diagnose(f Facts) []Finding {
	return slices.Concat(
		user(f), engine(f.Engine), cgroups(f.Cgroups, f.Engine), settings(f.Settings), ports(f.Ports),
		inotify(f.Inotify), disks(f.Disks), swap(f.Swap), optional(f),
	)
}

// Worst returns the worst verdict of all.
func Worst(list []Finding) Verdict {
	worst := OK
	for _, f := range list {
		if f.Verdict == Fail || worst == OK {
			worst = f.Verdict
		}
	}
	return worst
}

func user(f Facts) []Finding {
	const check = "user"
	switch {
	case f.UID != 0:
		return []Finding{{check, Warn, fmt.Sprintf("looked as user %d: the agent needs root, and some of this may not be the whole truth", f.UID), "run it as root"}}
	case !f.CanProtect:
		return []Finding{{check, Warn, "root here may not lower oom_score_adj: the agent and Guaranteed pods are killed as gladly as anything else when memory runs out", "give the agent CAP_SYS_RESOURCE"}}
	default:
		return []Finding{{check, OK, "root", ""}}
	}
}

func engine(e Engine) []Finding {
	const check = "engine"
	switch {
	case e.Denied:
		return []Finding{{check, Fail, fmt.Sprintf("%s may not be spoken to: %s", e.Address, e.Problem), "run it as root, or as a member of the group docker"}}
	case e.Problem != "":
		return []Finding{{check, Fail, fmt.Sprintf("%s does not answer: %s", e.Address, e.Problem), "install Docker Engine 20.10 or later and start it (systemctl start docker), or name another with --docker-host"}}
	default:
		return []Finding{{check, OK, fmt.Sprintf("%s answers, version %s", e.Address, cmp.Or(e.Features.Version, "unknown")), ""}}
	}
}

func cgroups(c Cgroups, e Engine) []Finding {
	const check = "cgroups"
	if c.Problem != "" {
		return []Finding{{check, Fail, "no cgroups can be seen: " + c.Problem, "mount them at /sys/fs/cgroup; --cgroups-per-qos=false does without"}}
	}
	var list []Finding
	for _, l := range c.Lacks {
		cure := "have it delegated to this machine, or go without pods' cgroups: --cgroups-per-qos=false"
		if l.Controller == "memory" || l.Controller == "cpuset" {
			cure = fmt.Sprintf("boot with cgroup_enable=%s on the kernel's command line, or go without pods' cgroups: --cgroups-per-qos=false", l.Controller)
		}
		list = append(list, Finding{check, Fail, fmt.Sprintf("controller %s is missing: %s", l.Controller, l.Disables), cure})
	}
	if len(list) == 0 {
		list = append(list, Finding{check, OK, fmt.Sprintf("version %d, with all controllers", c.Version), ""})
	}
	if e.Problem != "" {
		return list
	}
	driver := Finding{"cgroup driver", OK, string(e.Features.CgroupDriver), ""}
	switch {
	case e.Features.CgroupDriver == "":
		driver.Verdict, driver.Message, driver.Cure = Warn, "the engine does not say who makes its cgroups", "see what docker info says of its Cgroup Driver"
	case e.Features.CgroupDriver == runtime.Cgroupfs && c.Systemd:
		driver.Verdict, driver.Message = Warn, "cgroupfs, while systemd runs the machine: two keep one tree, and each thinks it is alone"
		driver.Cure = `set "exec-opts": ["native.cgroupdriver=systemd"] in /etc/docker/daemon.json, while no pods run`
	}
	return append(list, driver)
}

func settings(list []Setting) []Finding {
	const check = "kernel settings"
	var found []Finding
	for _, s := range list {
		switch {
		case s.Problem != "":
			found = append(found, Finding{check, Warn, fmt.Sprintf("%s cannot be read: %s", s.Name, s.Problem), "look at it as root: sysctl " + s.Name})
		case s.Have != s.Want:
			found = append(found, Finding{check, Warn, fmt.Sprintf("%s is %d, a kubelet has %d", s.Name, s.Have, s.Want),
				fmt.Sprintf("sysctl -w %s=%d, and a line in /etc/sysctl.d; an agent with the default root dir does it itself where it may", s.Name, s.Want)})
		}
	}
	if len(found) == 0 {
		return []Finding{{check, OK, "as a kubelet sets them", ""}}
	}
	return found
}

// agentProcess is what an agent of ours is called.
const agentProcess = "podkeeper"

func ports(list []Port) []Finding {
	var found []Finding
	for _, p := range list {
		f := Finding{fmt.Sprintf("port %d", p.Port), OK, "free", ""}
		switch {
		case !p.Taken:
		case p.Process == agentProcess:
			f.Message = fmt.Sprintf("served by %s (process %d)", p.Process, p.PID)
		case p.Process == "":
			f.Verdict, f.Message, f.Cure = Warn, "in use by a process that may not be seen", "as root, ss -ltnp says whose it is"
		default:
			f.Verdict, f.Message = Warn, fmt.Sprintf("in use by %s (process %d)", p.Process, p.PID)
			f.Cure = "stop it if it is another node agent: two must not have the same manifests"
		}
		found = append(found, f)
	}
	return found
}

// What a user should have of inotify, at least.
const (
	fewWatches   = 8192
	moreInstance = "sysctl -w fs.inotify.max_user_instances=512, and a line in /etc/sysctl.d"
)

func inotify(i Inotify) []Finding {
	const check = "inotify"
	switch {
	case i.Problem != "":
		return []Finding{{check, Warn, fmt.Sprintf("no instance can be had (limit %d): edits of manifests are noticed by the period only: %s", i.Instances, i.Problem), moreInstance}}
	case i.Instances > 0 && i.Used >= 0 && i.Used*10 >= i.Instances*9:
		return []Finding{{check, Warn, fmt.Sprintf("%d of %d instances are in use", i.Used, i.Instances), moreInstance}}
	case i.Watches > 0 && i.Watches < fewWatches:
		return []Finding{{check, Warn, fmt.Sprintf("%d watches are few", i.Watches), "sysctl -w fs.inotify.max_user_watches=65536, and a line in /etc/sysctl.d"}}
	case i.Used < 0:
		return []Finding{{check, OK, fmt.Sprintf("%d instances, %d watches", i.Instances, i.Watches), ""}}
	default:
		return []Finding{{check, OK, fmt.Sprintf("%d of %d instances in use, %d watches", i.Used, i.Instances, i.Watches), ""}}
	}
}

// lowDisk is below which no pod is admitted; the shares are below which pods are
// evicted.
const (
	lowDisk     = 256 << 20
	lowShare    = 10 // percent
	lowInodes   = 5
	moreRoom    = "make room (docker system df, journalctl --disk-usage), or move it to a larger filesystem"
	moreInodes  = "remove small files by the thousand, or make the filesystem anew with more inodes"
	bytesInUnit = 1024
)

func disks(list []Disk) []Finding {
	var found []Finding
	for _, d := range list {
		f := Finding{"disk of " + d.Of, OK, fmt.Sprintf("%s: %s of %s available", d.Path, size(d.Available), size(d.Capacity)), ""}
		switch {
		case d.Problem != "":
			f.Verdict, f.Message, f.Cure = Warn, fmt.Sprintf("%s cannot be looked at: %s", d.Path, d.Problem), "look at it as root: df "+d.Path
		case d.Available < lowDisk:
			f.Verdict, f.Message, f.Cure = Fail, f.Message+": too little for any pod", moreRoom
		case d.InodesTotal > 0 && d.InodesAvailable*100 < d.InodesTotal*lowInodes:
			f.Verdict, f.Message, f.Cure = Warn, fmt.Sprintf("%s: %d of %d inodes available", d.Path, d.InodesAvailable, d.InodesTotal), moreInodes
		case d.Available*100 < d.Capacity*lowShare:
			f.Verdict, f.Message, f.Cure = Warn, f.Message+": pods are evicted", moreRoom
		}
		found = append(found, f)
	}
	return found
}

func size(bytes int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	value, at := float64(bytes), 0
	for value >= bytesInUnit && at < len(units)-1 {
		value, at = value/bytesInUnit, at+1
	}
	return fmt.Sprintf("%.1f %s", value, units[at])
}

func swap(bytes int64) []Finding {
	const check = "swap"
	if bytes == 0 {
		return []Finding{{check, OK, "off", ""}}
	}
	return []Finding{{check, Warn, size(bytes) + ": what has no memory limit may be swapped out, which slows all", "swapoff -a, and out of /etc/fstab"}}
}

// optional says what pods cannot ask for. That is no fault: few do.
func optional(f Facts) []Finding {
	var list []Finding
	add := func(check string, there bool, yes, no, cure string) {
		if there {
			list = append(list, Finding{check, OK, yes, ""})
			return
		}
		list = append(list, Finding{check, OK, "none: " + no, cure})
	}
	if e := f.Engine.Features; f.Engine.Problem == "" {
		add("AppArmor", e.AppArmor, "the engine has it", "pods that name a profile wait", "boot a kernel with AppArmor, and install apparmor")
		add("SELinux", e.SELinux, "the engine has it", "seLinuxOptions do nothing", `set "selinux-enabled": true in /etc/docker/daemon.json on a machine with SELinux`)
		add("user namespaces", e.OwnUsers, "the engine maps users", "pods with hostUsers: false wait", `set "userns-remap": "default" in /etc/docker/daemon.json`)
		add("image volumes", e.ImageMounts, "the engine mounts images", "pods with an image volume wait", "update to Docker Engine 28 or later")
		add("recursive read-only", e.RecursiveReadOnly, "the engine has it", "pods with recursiveReadOnly: Enabled wait", "update to Docker Engine 25 or later, on Linux 5.12 or later")
		if !e.Seccomp {
			list = append(list, Finding{"seccomp", Warn, "none: pods that ask for a profile wait, and others have none either", "use a kernel and an engine with seccomp"})
		} else {
			list = append(list, Finding{"seccomp", OK, "the engine has it", ""})
		}
	}
	add("SCTP", f.SCTP, "the kernel has it", "pods with an SCTP port wait", "install the kernel's module sctp (linux-modules-extra with some distributions)")
	add("project quotas", f.NoQuotas == "", "the root dir has them", f.NoQuotas+"; the sizes of claims do not hold", "mount the root dir's filesystem with prjquota")
	var pages []string
	for _, name := range slices.Sorted(maps.Keys(f.HugePages)) {
		if bytes := f.HugePages[name]; bytes > 0 {
			pages = append(pages, fmt.Sprintf("%s: %s", name, resource.NewQuantity(bytes, resource.BinarySI)))
		}
	}
	add("huge pages", len(pages) > 0, strings.Join(pages, ", "), "pods that ask for them wait", "sysctl -w vm.nr_hugepages=COUNT")
	return list
}

package validate

import (
	"net"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The kinds of volume that are somewhere else. This agent mounts few of them,
// but says first what Kubernetes would say.

func nfs(n *v1.NFSVolumeSource, path *field.Path) field.ErrorList {
	errs := slices.Concat(
		required(path.Child("server"), n.Server),
		required(path.Child("path"), n.Path),
	)
	if !strings.HasPrefix(n.Path, "/") {
		errs = append(errs, field.Invalid(path.Child("path"), n.Path, "must be absolute"))
	}
	return errs
}

func iscsi(i *v1.ISCSIVolumeSource, path *field.Path) field.ErrorList {
	errs := slices.Concat(
		required(path.Child("targetPortal"), i.TargetPortal),
		checked(path.Child("iqn"), i.IQN, iscsiName),
		inRange(path.Child("lun"), i.Lun, 0, 255),
	)
	if (i.DiscoveryCHAPAuth || i.SessionCHAPAuth) && i.SecretRef == nil {
		errs = append(errs, field.Required(path.Child("secretRef"), "must be set for CHAP"))
	}
	if i.InitiatorName != nil {
		errs = append(errs, malformed(path.Child("initiatorName"), *i.InitiatorName, iscsiName(*i.InitiatorName))...)
	}
	return errs
}

// The forms of an iSCSI name, by their first three characters. The first is
// looked for anywhere in the name, as Kubernetes does.
var iscsiNames = map[string]*regexp.Regexp{
	"iqn": regexp.MustCompile(`iqn\.\d{4}-\d{2}\.[[:alnum:]-.]+:[^,;*&$|\s]+$`),
	"eui": regexp.MustCompile(`^eui.[[:alnum:]]{16}$`),
	"naa": regexp.MustCompile(`^naa.[[:alnum:]]{32}$`),
}

func iscsiName(name string) []string {
	form, known := iscsiNames[name[:min(3, len(name))]]
	switch {
	case !known:
		return []string{"must begin with iqn, eui or naa"}
	case !form.MatchString(name):
		return []string{"must be a complete name, such as iqn.2001-04.com.example:disk"}
	}
	return nil
}

// iscsiSession is checked whatever other kinds are set: the initiator's name is
// registered under the volume's name and the portal.
func iscsiSession(v *v1.Volume, path *field.Path) field.ErrorList {
	const longest = 64
	if v.ISCSI == nil || v.ISCSI.InitiatorName == nil || len(v.Name)+1+len(v.ISCSI.TargetPortal) <= longest {
		return nil
	}
	return one(field.Invalid(path.Child("name"), v.Name,
		"must not be longer than 64 characters together with ':' and iscsi.targetPortal where iscsi.initiatorName is set"))
}

func inRange(path *field.Path, value int32, least, most int) field.ErrorList {
	return malformed(path, value, validation.IsInRange(int(value), least, most))
}

func glusterfs(g *v1.GlusterfsVolumeSource, path *field.Path) field.ErrorList {
	return slices.Concat(
		required(path.Child("endpoints"), g.EndpointsName),
		required(path.Child("path"), g.Path),
	)
}

func flocker(f *v1.FlockerVolumeSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case f.DatasetName == "" && f.DatasetUUID == "":
		errs = one(field.Required(path, "must have datasetName or datasetUUID"))
	case f.DatasetName != "" && f.DatasetUUID != "":
		errs = one(field.Invalid(path, f.DatasetName, "must have one of datasetName and datasetUUID only"))
	}
	if strings.Contains(f.DatasetName, "/") {
		errs = append(errs, field.Invalid(path.Child("datasetName"), f.DatasetName, "must not contain '/'"))
	}
	return errs
}

func rbd(r *v1.RBDVolumeSource, path *field.Path) field.ErrorList {
	return slices.Concat(
		notEmpty(path.Child("monitors"), r.CephMonitors),
		required(path.Child("image"), r.RBDImage),
	)
}

func cinder(c *v1.CinderVolumeSource, path *field.Path) field.ErrorList {
	return slices.Concat(
		required(path.Child("volumeID"), c.VolumeID),
		secretRef(path.Child("secretRef"), c.SecretRef),
	)
}

func secretRef(path *field.Path, ref *v1.LocalObjectReference) field.ErrorList {
	if ref == nil {
		return nil
	}
	return required(path.Child("name"), ref.Name)
}

func quobyte(q *v1.QuobyteVolumeSource, path *field.Path) field.ErrorList {
	const longestTenant = 64
	errs := required(path.Child("volume"), q.Volume)
	registry := path.Child("registry")
	switch {
	case q.Registry == "":
		return append(errs, field.Required(registry, "must be host:port, or several of them with commas between"))
	case len(q.Tenant) > longestTenant:
		return append(errs, field.Required(path.Child("tenant"), "must be a UUID of no more than 64 characters"))
	}
	for pair := range strings.SplitSeq(q.Registry, ",") {
		if _, _, err := net.SplitHostPort(pair); err != nil {
			errs = append(errs, field.Invalid(registry, q.Registry, "must be host:port, or several of them with commas between"))
		}
	}
	return errs
}

func fibreChannel(f *v1.FCVolumeSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := path.Child("targetWWNs")
	switch {
	case len(f.TargetWWNs) == 0 && len(f.WWIDs) == 0:
		return one(field.Required(names, "must have targetWWNs or wwids"))
	case len(f.TargetWWNs) == 0:
		return nil
	case len(f.WWIDs) > 0:
		errs = one(field.Invalid(names, f.TargetWWNs, "must not be set together with wwids"))
	}
	if f.Lun == nil {
		return append(errs, field.Required(path.Child("lun"), "must be set where targetWWNs is"))
	}
	return append(errs, inRange(path.Child("lun"), *f.Lun, 0, 255)...)
}

func flexVolume(f *v1.FlexVolumeSource, path *field.Path) field.ErrorList {
	errs := required(path.Child("driver"), f.Driver)
	for key := range f.Options {
		domain, _, _ := strings.Cut(key, "/")
		domain = "." + strings.ToLower(domain)
		if strings.HasSuffix(domain, ".kubernetes.io") || strings.HasSuffix(domain, ".k8s.io") {
			errs = append(errs, field.Invalid(path.Child("options").Key(key), key,
				"must not be in the domains kubernetes.io and k8s.io: they are reserved"))
		}
	}
	return errs
}

func csi(c *v1.CSIVolumeSource, path *field.Path) field.ErrorList {
	const longestDriver = 63
	var errs field.ErrorList
	driver := path.Child("driver")
	if c.Driver == "" {
		errs = required(driver, c.Driver)
	} else {
		errs = malformed(driver, c.Driver, validation.IsDNS1123Subdomain(strings.ToLower(c.Driver)))
		if len(c.Driver) > longestDriver {
			errs = append(errs, field.TooLong(driver, c.Driver, longestDriver))
		}
	}
	if ref := c.NodePublishSecretRef; ref != nil {
		errs = append(errs, checked(path.Child("nodePublishSecretRef", "name"), ref.Name, objectName)...)
	}
	return errs
}

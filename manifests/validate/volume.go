package validate

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// volumes checks the pod's volumes and returns those that are fit to be mounted,
// by name.
func volumes(s *v1.PodSpec, meta *metav1.ObjectMeta, path *field.Path) (map[string]v1.VolumeSource, field.ErrorList) {
	var all field.ErrorList
	usable := map[string]v1.VolumeSource{}
	created := createdClaims(s.Volumes, meta.Name)
	for i := range s.Volumes {
		v, at := &s.Volumes[i], path.Index(i)
		errs := slices.Concat(
			volumeSource(v, meta, at),
			checked(at.Child("name"), v.Name, validation.IsDNS1123Label),
		)
		if _, taken := usable[v.Name]; taken {
			errs = append(errs, field.Duplicate(at.Child("name"), v.Name))
		}
		if len(errs) == 0 {
			usable[v.Name] = v.VolumeSource
		}
		if claim := v.PersistentVolumeClaim; claim != nil && created[claim.ClaimName] {
			errs = append(errs, field.Invalid(at.Child("persistentVolumeClaim", "claimName"), claim.ClaimName,
				"is the claim that is made for an ephemeral volume of this pod"))
		}
		all = slices.Concat(all, errs, tokenWithoutAccount(s, v, at))
	}
	return usable, all
}

// createdClaims are the names of the claims that come with the pod.
func createdClaims(list []v1.Volume, podName string) map[string]bool {
	names := map[string]bool{}
	for i := range list {
		if list[i].Ephemeral != nil && podName != "" {
			names[podName+"-"+list[i].Name] = true
		}
	}
	return names
}

func tokenWithoutAccount(s *v1.PodSpec, v *v1.Volume, path *field.Path) field.ErrorList {
	if s.ServiceAccountName != "" || v.Projected == nil {
		return nil
	}
	var errs field.ErrorList
	for i, source := range v.Projected.Sources {
		if source.ServiceAccountToken != nil {
			errs = append(errs, field.Forbidden(path.Child("projected", "sources").Index(i).Child("serviceAccountToken"),
				"needs spec.serviceAccountName"))
		}
	}
	return errs
}

// volumeSource checks the first kind that is set and refuses the others.
func volumeSource(v *v1.Volume, meta *metav1.ObjectMeta, path *field.Path) field.ErrorList {
	errs := oneOf(volumeKinds(v, meta, path), path, "must have a type, such as emptyDir or hostPath")
	return append(errs, iscsiSession(v, path)...)
}

// kind is one of several fields of which one is to be set.
type kind struct {
	name  string
	set   bool
	check func(*field.Path) field.ErrorList
}

// oneOf checks the first that is set and refuses the others; none says what is
// missing where there is none.
func oneOf(kinds []kind, path *field.Path, none string) field.ErrorList {
	var errs field.ErrorList
	found := ""
	for _, k := range kinds {
		switch {
		case !k.set:
		case found != "":
			errs = append(errs, field.Forbidden(path.Child(k.name), "must not be set together with "+found))
		default:
			found = k.name
			errs = append(errs, k.check(path.Child(k.name))...)
		}
	}
	if found == "" {
		errs = append(errs, field.Required(path, none))
	}
	return errs
}

// volumeKinds has them in the order in which the first that is set counts.
func volumeKinds(v *v1.Volume, meta *metav1.ObjectMeta, path *field.Path) []kind {
	type at = *field.Path
	return []kind{
		{"emptyDir", v.EmptyDir != nil, func(p at) field.ErrorList { return emptyDir(v.EmptyDir, p) }},
		{"hostPath", v.HostPath != nil, func(p at) field.ErrorList { return hostPath(v.HostPath, p) }},
		{"gitRepo", v.GitRepo != nil, func(p at) field.ErrorList { return gitRepo(v.GitRepo, p) }},
		{"gcePersistentDisk", v.GCEPersistentDisk != nil, func(p at) field.ErrorList { return gceDisk(v.GCEPersistentDisk, p) }},
		{"awsElasticBlockStore", v.AWSElasticBlockStore != nil, func(p at) field.ErrorList { return awsDisk(v.AWSElasticBlockStore, p) }},
		{"secret", v.Secret != nil, func(p at) field.ErrorList { return secret(v.Secret, p) }},
		{"nfs", v.NFS != nil, func(p at) field.ErrorList { return nfs(v.NFS, p) }},
		{"iscsi", v.ISCSI != nil, func(p at) field.ErrorList { return iscsi(v.ISCSI, p) }},
		{"glusterfs", v.Glusterfs != nil, func(p at) field.ErrorList { return glusterfs(v.Glusterfs, p) }},
		{"flocker", v.Flocker != nil, func(p at) field.ErrorList { return flocker(v.Flocker, p) }},
		{"persistentVolumeClaim", v.PersistentVolumeClaim != nil, func(p at) field.ErrorList {
			return required(p.Child("claimName"), v.PersistentVolumeClaim.ClaimName)
		}},
		{"rbd", v.RBD != nil, func(p at) field.ErrorList { return rbd(v.RBD, p) }},
		{"cinder", v.Cinder != nil, func(p at) field.ErrorList { return cinder(v.Cinder, p) }},
		{"cephfs", v.CephFS != nil, func(p at) field.ErrorList { return notEmpty(p.Child("monitors"), v.CephFS.Monitors) }},
		{"quobyte", v.Quobyte != nil, func(p at) field.ErrorList { return quobyte(v.Quobyte, p) }},
		{"downwardAPI", v.DownwardAPI != nil, func(p at) field.ErrorList { return downwardAPI(v.DownwardAPI, p) }},
		{"fc", v.FC != nil, func(p at) field.ErrorList { return fibreChannel(v.FC, p) }},
		{"flexVolume", v.FlexVolume != nil, func(p at) field.ErrorList { return flexVolume(v.FlexVolume, p) }},
		{"configMap", v.ConfigMap != nil, func(p at) field.ErrorList { return configMap(v.ConfigMap, p) }},
		{"azureFile", v.AzureFile != nil, func(p at) field.ErrorList { return azureFile(v.AzureFile, p) }},
		{"vsphereVolume", v.VsphereVolume != nil, func(p at) field.ErrorList {
			return required(p.Child("volumePath"), v.VsphereVolume.VolumePath)
		}},
		{"photonPersistentDisk", v.PhotonPersistentDisk != nil, func(p at) field.ErrorList {
			return required(p.Child("pdID"), v.PhotonPersistentDisk.PdID)
		}},
		{"portworxVolume", v.PortworxVolume != nil, func(p at) field.ErrorList {
			return required(p.Child("volumeID"), v.PortworxVolume.VolumeID)
		}},
		{"azureDisk", v.AzureDisk != nil, func(p at) field.ErrorList { return azureDisk(v.AzureDisk, p) }},
		{"storageos", v.StorageOS != nil, func(p at) field.ErrorList { return storageOS(v.StorageOS, p) }},
		{"projected", v.Projected != nil, func(p at) field.ErrorList { return projected(v.Projected, p) }},
		{"scaleIO", v.ScaleIO != nil, func(p at) field.ErrorList { return scaleIO(v.ScaleIO, p) }},
		{"csi", v.CSI != nil, func(p at) field.ErrorList { return csi(v.CSI, p) }},
		{"ephemeral", v.Ephemeral != nil, func(p at) field.ErrorList { return ephemeralVolume(v, meta, path) }},
		{"image", v.Image != nil, func(p at) field.ErrorList {
			return slices.Concat(required(p.Child("reference"), v.Image.Reference), pullPolicy(p.Child("pullPolicy"), v.Image.PullPolicy))
		}},
	}
}

func notEmpty(path *field.Path, list []string) field.ErrorList {
	if len(list) == 0 {
		return one(field.Required(path, "must not be empty"))
	}
	return nil
}

func emptyDir(e *v1.EmptyDirVolumeSource, path *field.Path) field.ErrorList {
	return slices.Concat(
		forbiddenIf(e.SizeLimit != nil && e.SizeLimit.Sign() < 0, path.Child("sizeLimit"), "must not be negative"),
		fileMode(path.Child("mode"), e.Mode, sticky),
	)
}

func hostPath(h *v1.HostPathVolumeSource, path *field.Path) field.ErrorList {
	if h.Path == "" {
		return required(path.Child("path"), h.Path)
	}
	return slices.Concat(
		noClimbing(path.Child("path"), h.Path),
		optionalChoice(path.Child("type"), h.Type, v1.HostPathUnset, v1.HostPathDirectoryOrCreate, v1.HostPathDirectory,
			v1.HostPathFileOrCreate, v1.HostPathFile, v1.HostPathSocket, v1.HostPathCharDev, v1.HostPathBlockDev),
	)
}

func gitRepo(g *v1.GitRepoVolumeSource, path *field.Path) field.ErrorList {
	return slices.Concat(
		required(path.Child("repository"), g.Repository),
		relativePath(path.Child("directory"), g.Directory),
	)
}

// ephemeralVolume takes the path of the volume: the name of the claim follows
// from that of the volume.
func ephemeralVolume(v *v1.Volume, meta *metav1.ObjectMeta, path *field.Path) field.ErrorList {
	template := v.Ephemeral.VolumeClaimTemplate
	templatePath := path.Child("ephemeral", "volumeClaimTemplate")
	var errs field.ErrorList
	if template == nil {
		errs = one(field.Required(templatePath, "must be set"))
	} else {
		errs = claimTemplate(template, templatePath)
	}
	if meta.Name != "" && v.Name != "" {
		claim := meta.Name + "-" + v.Name
		for _, message := range objectName(claim) {
			errs = append(errs, field.Invalid(path.Child("name"), v.Name, fmt.Sprintf("makes a claim called %q: %s", claim, message)))
		}
	}
	return errs
}

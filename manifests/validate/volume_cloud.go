package validate

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func gceDisk(g *v1.GCEPersistentDiskVolumeSource, path *field.Path) field.ErrorList {
	return slices.Concat(
		required(path.Child("pdName"), g.PDName),
		inRange(path.Child("partition"), g.Partition, 0, 255),
	)
}

func awsDisk(a *v1.AWSElasticBlockStoreVolumeSource, path *field.Path) field.ErrorList {
	return slices.Concat(
		required(path.Child("volumeID"), a.VolumeID),
		inRange(path.Child("partition"), a.Partition, 0, 255),
	)
}

func azureFile(a *v1.AzureFileVolumeSource, path *field.Path) field.ErrorList {
	return slices.Concat(
		required(path.Child("secretName"), a.SecretName),
		required(path.Child("shareName"), a.ShareName),
	)
}

func azureDisk(a *v1.AzureDiskVolumeSource, path *field.Path) field.ErrorList {
	errs := slices.Concat(
		required(path.Child("diskName"), a.DiskName),
		required(path.Child("diskURI"), a.DataDiskURI),
		optionalChoice(path.Child("cachingMode"), a.CachingMode,
			v1.AzureDataDiskCachingNone, v1.AzureDataDiskCachingReadOnly, v1.AzureDataDiskCachingReadWrite),
		optionalChoice(path.Child("kind"), a.Kind,
			v1.AzureSharedBlobDisk, v1.AzureDedicatedBlobDisk, v1.AzureManagedDisk),
	)
	if a.Kind == nil {
		return errs
	}
	prefix, form := "https://", "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
	if *a.Kind == v1.AzureManagedDisk {
		prefix = "/subscriptions/"
		form = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
	}
	if !strings.HasPrefix(a.DataDiskURI, prefix) {
		errs = append(errs, field.NotSupported(path.Child("diskURI"), a.DataDiskURI, []string{form}))
	}
	return errs
}

func storageOS(o *v1.StorageOSVolumeSource, path *field.Path) field.ErrorList {
	return slices.Concat(
		checked(path.Child("volumeName"), o.VolumeName, validation.IsDNS1123Label),
		optional(path.Child("volumeNamespace"), o.VolumeNamespace, validation.IsDNS1123Label),
		secretRef(path.Child("secretRef"), o.SecretRef),
	)
}

func scaleIO(o *v1.ScaleIOVolumeSource, path *field.Path) field.ErrorList {
	return slices.Concat(
		required(path.Child("gateway"), o.Gateway),
		required(path.Child("system"), o.System),
		required(path.Child("volumeName"), o.VolumeName),
	)
}

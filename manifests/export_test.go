package manifests

// PodFields and ContainerFields open the lists to the tests that hold them to the
// table of classes.
var (
	PodFields       = podFields
	ContainerFields = containerFields
)

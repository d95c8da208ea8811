package validate

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func projected(p *v1.ProjectedVolumeSource, path *field.Path) field.ErrorList {
	errs := slices.Concat(
		fileMode(path.Child("defaultMode"), p.DefaultMode, permissions),
		userID(path.Child("defaultUser"), p.DefaultUser),
	)
	files := map[string]bool{}
	for i := range p.Sources {
		source, at := &p.Sources[i], path.Child("sources").Index(i)
		errs = append(errs, projection(source, at)...)
		for _, file := range projectedFiles(source) {
			if files[file] {
				errs = append(errs, field.Invalid(path, file, "must be the path of one file only"))
			}
			files[file] = true
		}
	}
	return errs
}

// projection checks one source of a projected volume.
func projection(s *v1.VolumeProjection, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	kinds := 0
	if s.Secret != nil {
		kinds++
		at := path.Child("secret")
		errs = slices.Concat(errs, required(at.Child("name"), s.Secret.Name), keysToPaths(s.Secret.Items, at.Child("items")))
	}
	if s.ConfigMap != nil {
		kinds++
		at := path.Child("configMap")
		errs = slices.Concat(errs, required(at.Child("name"), s.ConfigMap.Name), keysToPaths(s.ConfigMap.Items, at.Child("items")))
	}
	if s.DownwardAPI != nil {
		kinds++
		errs = append(errs, downwardFiles(s.DownwardAPI.Items, path.Child("downwardAPI", "items"))...)
	}
	if s.ServiceAccountToken != nil {
		kinds++
		errs = append(errs, accountToken(s.ServiceAccountToken, path.Child("serviceAccountToken"))...)
	}
	if s.ClusterTrustBundle != nil {
		kinds++
		errs = append(errs, trustBundle(s.ClusterTrustBundle, path.Child("clusterTrustBundle"))...)
	}
	if s.PodCertificate != nil {
		kinds++
		errs = append(errs, podCertificate(s.PodCertificate, path.Child("podCertificate"))...)
	}
	return append(errs, forbiddenIf(kinds > 1, path, "must have one kind of content only")...)
}

// projectedFiles are the paths of a source's files that no other file of the
// volume may have. Kubernetes does not look at those of service account tokens.
func projectedFiles(s *v1.VolumeProjection) []string {
	var files []string
	add := func(path string) {
		if path != "" {
			files = append(files, path)
		}
	}
	if s.Secret != nil {
		for _, item := range s.Secret.Items {
			add(item.Path)
		}
	}
	if s.ConfigMap != nil {
		for _, item := range s.ConfigMap.Items {
			add(item.Path)
		}
	}
	if s.DownwardAPI != nil {
		for _, item := range s.DownwardAPI.Items {
			add(item.Path)
		}
	}
	if s.ClusterTrustBundle != nil {
		files = append(files, s.ClusterTrustBundle.Path) // two that are empty clash too
	}
	if c := s.PodCertificate; c != nil {
		add(c.CredentialBundlePath)
		add(c.KeyPath)
		add(c.CertificateChainPath)
	}
	return files
}

func accountToken(t *v1.ServiceAccountTokenProjection, path *field.Path) field.ErrorList {
	const shortest, longest = 10 * 60, 1 << 32
	errs := slices.Concat(
		required(path.Child("path"), t.Path),
		fileInVolume(path.Child("path"), t.Path),
		userID(path.Child("user"), t.User),
	)
	seconds := path.Child("expirationSeconds")
	switch {
	case t.ExpirationSeconds == nil:
		errs = append(errs, field.Required(seconds, "must be set"))
	case *t.ExpirationSeconds < shortest:
		errs = append(errs, field.Invalid(seconds, *t.ExpirationSeconds, "must be 600 (10 minutes) or more"))
	case *t.ExpirationSeconds > longest:
		errs = append(errs, field.Invalid(seconds, *t.ExpirationSeconds, "must not be above 2^32"))
	}
	return errs
}

func trustBundle(b *v1.ClusterTrustBundleProjection, path *field.Path) field.ErrorList {
	errs := slices.Concat(
		required(path.Child("path"), b.Path),
		fileInVolume(path.Child("path"), b.Path),
		userID(path.Child("user"), b.User),
	)
	switch {
	case b.Name != nil && b.SignerName != nil:
		errs = append(errs, field.Invalid(path, *b.Name, "must have one of name and signerName only"))
	case b.Name != nil:
		errs = slices.Concat(errs,
			required(path.Child("name"), *b.Name),
			malformed(path.Child("name"), *b.Name, bundleName(*b.Name)),
		)
		if b.LabelSelector != nil {
			errs = append(errs, field.Invalid(path.Child("labelSelector"), "", "must not be set together with name"))
		}
	case b.SignerName != nil:
		// An empty name is reported for itself and as one that is no signer's.
		errs = slices.Concat(errs,
			required(path.Child("signerName"), *b.SignerName),
			signerName(path.Child("signerName"), *b.SignerName),
			metavalidation.ValidateLabelSelector(b.LabelSelector, metavalidation.LabelSelectorValidationOptions{},
				path.Child("labelSelector")),
		)
	default:
		errs = append(errs, field.Required(path, "must have name or signerName"))
	}
	return errs
}

// bundleName is the syntax of the name of a ClusterTrustBundle: an object's
// name, after the name of its signer (with ':' for '/') where it has one.
func bundleName(name string) []string {
	if i := strings.LastIndex(name, ":"); i >= 0 {
		switch signer := name[:i]; {
		case signer == "":
			return []string{"must not begin with ':'"}
		case strings.Contains(signer, "/"):
			return []string{"must have ':' in place of each '/' in the name of the signer"}
		}
		name = name[i+1:]
	}
	return validation.NameIsDNSSubdomain(name, false)
}

// What the certificate of a pod may ask for, in seconds.
const (
	leastCertificate          = 60 * 60
	mostCertificate           = 91 * 24 * 60 * 60
	mostKubernetesCertificate = 24 * 60 * 60
)

func podCertificate(c *v1.PodCertificateProjection, path *field.Path) field.ErrorList {
	errs := slices.Concat(
		signerName(path.Child("signerName"), c.SignerName),
		userAnnotations(c.UserAnnotations, path.Child("userAnnotations")),
		userID(path.Child("user"), c.User),
		choice(path.Child("keyType"), c.KeyType, "RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"),
	)
	if seconds := c.MaxExpirationSeconds; seconds != nil {
		most := int32(mostCertificate)
		if domain, _, _ := strings.Cut(c.SignerName, "/"); domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") {
			most = mostKubernetesCertificate
		}
		if *seconds < leastCertificate || *seconds > most {
			errs = append(errs, field.Invalid(path.Child("maxExpirationSeconds"), *seconds,
				utilvalidation.InclusiveRangeError(leastCertificate, int(most))))
		}
	}
	files := 0
	for name, file := range map[string]string{
		"credentialBundlePath": c.CredentialBundlePath,
		"keyPath":              c.KeyPath,
		"certificateChainPath": c.CertificateChainPath,
	} {
		if file != "" {
			files++
			errs = append(errs, fileInVolume(path.Child(name), file)...)
		}
	}
	if files == 0 {
		errs = append(errs, field.Required(path, "must have credentialBundlePath, keyPath or certificateChainPath"))
	}
	return errs
}

func userAnnotations(all map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for key := range all {
		errs = append(errs, utilvalidation.IsDomainPrefixedKey(path, strings.ToLower(key))...)
	}
	if validation.ValidateAnnotationsSize(all) != nil {
		errs = append(errs, field.TooLong(path, "", validation.TotalAnnotationSizeLimitB))
	}
	return errs
}

// signerName reports what is not of the form example.com/name.
func signerName(path *field.Path, name string) field.ErrorList {
	const longestDomain = utilvalidation.DNS1123SubdomainMaxLength
	// The second part has room for a namespace, a dot and an object's name.
	const longest = longestDomain + 1 + utilvalidation.DNS1123LabelMaxLength + 1 + utilvalidation.DNS1123SubdomainMaxLength
	if name == "" {
		return required(path, name)
	}
	domain, rest, ok := strings.Cut(name, "/")
	if !ok || strings.Contains(rest, "/") {
		return one(field.Invalid(path, name, "must be of the form example.com/name"))
	}
	errs := slices.Concat(
		dotted(path, domain, utilvalidation.IsDNS1123Label),
		dotted(path, rest, utilvalidation.IsDNS1123Subdomain),
	)
	if len(domain) > longestDomain {
		errs = append(errs, field.TooLong(path, domain, longestDomain))
	}
	if !strings.Contains(domain, ".") {
		errs = append(errs, field.Invalid(path, domain, "must be a domain with a dot in it"))
	}
	if len(name) > longest {
		errs = append(errs, field.TooLong(path, name, longest))
	}
	return errs
}

// dotted reports the first of the parts between the dots that does not pass.
func dotted(path *field.Path, value string, check syntax) field.ErrorList {
	for part := range strings.SplitSeq(value, ".") {
		if messages := check(part); len(messages) > 0 {
			for i := range messages {
				messages[i] = fmt.Sprintf("part %q: %s", part, messages[i])
			}
			return malformed(path, value, messages)
		}
	}
	return nil
}

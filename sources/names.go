package sources

import (
	"path/filepath"
	"slices"
	"strings"
)

// DefaultExtensions returns the endings of the files that are taken for
// manifests.
func DefaultExtensions() []string { return []string{".yaml", ".yml", ".json", ".manifest"} }

// refusedName says why a file of that name is never a manifest, whatever its
// extension: what editors and tools leave beside the file that they change.
func refusedName(name string) string {
	for _, prefix := range []string{".", "#"} {
		if strings.HasPrefix(name, prefix) {
			return "the name begins with " + prefix
		}
	}
	for _, suffix := range []string{"~", ".swp", ".bak", ".orig", ".tmp"} {
		if strings.HasSuffix(name, suffix) {
			return "the name ends in " + suffix
		}
	}
	if name == "4913" { // vim's test file for a writable folder
		return "an editor's temporary file"
	}
	return ""
}

// refusedExtension says why a file of that name is not taken; "" among
// extensions stands for a name without one.
func refusedExtension(name string, extensions []string) string {
	ext := filepath.Ext(name)
	if slices.Contains(extensions, ext) {
		return ""
	}
	shown := slices.DeleteFunc(slices.Clone(extensions), func(e string) bool { return e == "" })
	if ext == "" {
		return "no extension, want one of " + strings.Join(shown, " ")
	}
	return "extension " + ext + " is none of " + strings.Join(shown, " ")
}

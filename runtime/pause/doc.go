// Package pause is the built-in pause container: a program of less than 1 KiB
// without libc, and the image around it that an engine can load.
//
// The program (src/pause.c) is compiled for amd64 and arm64 by src/build.sh,
// which `make pause` calls; the binaries are checked in and embedded, so that
// an agent needs neither a registry nor the internet to start a pod. As process 1
// of a pod it reaps orphans, ends with code 0 on SIGTERM and SIGINT, ignores
// all other signals, and sleeps otherwise. `/pause -v` prints its version.
//
// [Image] wraps the binary into an archive for the engine's load call, made in
// memory and always of the same bytes. Its name carries a checksum of its
// content: an engine that has the name has the content, and two versions of the
// agent on one engine do not fight over a tag.
//
// The package knows nothing of engines: it does not load, pull, look for or
// remove anything. It makes no image for an architecture that it has no
// program for: there people name one of their own.
package pause

package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// dataOf is what the manager sends after its request, up to the end it says.
func dataOf(in *frameReader) io.Reader {
	reader, writer := io.Pipe()
	go func() {
		for {
			got, err := in.next()
			if err != nil {
				writer.CloseWithError(errors.New("the manager is gone"))
				return
			}
			if got.kind == kindEnd {
				writer.Close()
				return
			}
			if _, err := writer.Write(got.bytes); err != nil {
				return
			}
		}
	}()
	return reader
}

// put unpacks an archive below a directory. No link is followed, neither on the way there nor below.
func put(asked request, from io.Reader) error {
	owner := int(asked.User)
	top, _, err := openDirectory(asked.Directory, owner)
	if err != nil {
		return err
	}
	defer top.Close()
	if asked.IsOwnedLikeDirectory {
		if owner, err = ownerOf(top); err != nil {
			return err
		}
	}
	archive := tar.NewReader(from)
	for {
		member, err := archive.Next()
		if err == io.EOF {
			_, err = io.Copy(io.Discard, from)
			return err
		}
		if err != nil {
			return err
		}
		if asked.KeepsOwners {
			owner = member.Uid
		}
		if err := putMember(top, member, archive, owner, asked); err != nil {
			return fmt.Errorf("%s: %w", member.Name, err)
		}
	}
}

func ownerOf(directory *os.Root) (int, error) {
	found, err := directory.Stat(".")
	if err != nil {
		return 0, err
	}
	return int(found.Sys().(*syscall.Stat_t).Uid), nil
}

func putMember(top *os.Root, member *tar.Header, content io.Reader, owner int, asked request) error {
	name := strings.TrimSuffix(strings.TrimPrefix(member.Name, "./"), "/")
	if name == "" || name == "." {
		return nil
	}
	if !fs.ValidPath(name) {
		return errors.New("is not allowed in an archive")
	}
	if member.Typeflag == tar.TypeDir {
		return putDirectory(top, name, member, owner, asked)
	}
	if parent := path.Dir(name); parent != "." {
		if err := makeDirectories(top, parent, owner, asked.IsReplacing); err != nil {
			return err
		}
	}
	if err := top.RemoveAll(name); err != nil {
		return err
	}
	switch member.Typeflag {
	case tar.TypeSymlink:
		if err := top.Symlink(member.Linkname, name); err != nil {
			return err
		}
	case tar.TypeReg:
		if err := writeNew(top, name, content, fs.FileMode(member.Mode)&0o777); err != nil {
			return err
		}
	default:
		return fmt.Errorf("is of type %q, which is not allowed in an archive", member.Typeflag)
	}
	return top.Lchown(name, owner, owner)
}

// putDirectory leaves one that is there as it is, unless owners are kept: then it is the archive's in everything.
func putDirectory(top *os.Root, name string, member *tar.Header, owner int, asked request) error {
	if err := makeDirectories(top, name, owner, asked.IsReplacing); err != nil || !asked.KeepsOwners {
		return err
	}
	if err := top.Chmod(name, fs.FileMode(member.Mode)&0o777); err != nil {
		return err
	}
	return top.Lchown(name, owner, owner)
}

func writeNew(top *os.Root, name string, content io.Reader, mode fs.FileMode) error {
	file, err := top.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, content); err != nil {
		file.Close()
		return err
	}
	if err := file.Chmod(mode); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}

// makeDirectories makes what is missing; what is there and is no directory is refused or replaced.
func makeDirectories(top *os.Root, name string, owner int, isReplacing bool) error {
	at := ""
	for _, part := range strings.Split(name, "/") {
		at = path.Join(at, part)
		found, err := top.Lstat(at)
		if err == nil && found.IsDir() {
			continue
		}
		if err == nil && !isReplacing {
			return fmt.Errorf("%s is not a directory", at)
		}
		if err == nil {
			if err := top.RemoveAll(at); err != nil {
				return err
			}
		}
		if err := top.Mkdir(at, 0o755); err != nil {
			return err
		}
		if err := top.Chmod(at, 0o755); err != nil {
			return err
		}
		if err := top.Lchown(at, owner, owner); err != nil {
			return err
		}
	}
	return nil
}

// openDirectory follows no link. What is missing is made when an owner is given (not negative); otherwise the second
// value says what is wrong with it.
func openDirectory(directory string, owner int) (*os.Root, string, error) {
	root, err := os.OpenRoot("/")
	if err != nil {
		return nil, "", err
	}
	name := strings.TrimPrefix(directory, "/")
	if name == "" {
		return root, "", nil
	}
	defer root.Close()
	if owner >= 0 {
		if err := makeDirectories(root, name, owner, false); err != nil {
			return nil, "", err
		}
	}
	if why := whyNoDirectory(root, name); why != "" {
		return nil, why, nil
	}
	opened, err := root.OpenRoot(name)
	return opened, "", err
}

func whyNoDirectory(root *os.Root, name string) string {
	at := ""
	for _, part := range strings.Split(name, "/") {
		at = path.Join(at, part)
		found, err := root.Lstat(at)
		if err == nil && found.Mode()&fs.ModeSymlink != 0 {
			return "/" + at + " is a symbolic link"
		}
		if err != nil || !found.IsDir() {
			return "the image has no such directory"
		}
	}
	return ""
}

// removeAll removes leaves and what is below them; what is behind something that is no directory is not there.
func removeAll(asked request) error {
	top, why, err := openDirectory(asked.Directory, -1)
	if err != nil || why != "" {
		return err
	}
	defer top.Close()
	for _, name := range asked.Names {
		if !fs.ValidPath(name) {
			return fmt.Errorf("%q is not allowed", name)
		}
		if parent := path.Dir(name); parent != "." && whyNoDirectory(top, parent) != "" {
			continue
		}
		if err := top.RemoveAll(name); err != nil {
			return err
		}
	}
	return nil
}

// writeInPlace keeps the file: it may be mounted.
func writeInPlace(name string, content string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	if _, err := file.WriteString(content); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}

// addAccount gives a user a name where the image has none: some programs refuse to run for a number.
func addAccount(user uint32) error {
	for name, line := range map[string]string{
		"passwd": fmt.Sprintf("agent:x:%d:%d::/tmp:/bin/sh", user, user),
		"group":  fmt.Sprintf("agent:x:%d:", user),
	} {
		if err := addLine(name, line, fmt.Sprint(user)); err != nil {
			return err
		}
	}
	return nil
}

func addLine(name string, line string, id string) error {
	etc, why, err := openDirectory("/etc", -1)
	if err != nil || why != "" {
		return err
	}
	defer etc.Close()
	if found, err := etc.Lstat(name); err != nil || !found.Mode().IsRegular() {
		return nil
	}
	present, err := etc.ReadFile(name)
	if err != nil {
		return err
	}
	for _, one := range strings.Split(string(present), "\n") {
		if fields := strings.Split(one, ":"); len(fields) > 2 && fields[2] == id {
			return nil
		}
	}
	file, err := etc.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	if len(present) > 0 && present[len(present)-1] != '\n' {
		line = "\n" + line
	}
	_, err = file.WriteString(line + "\n")
	return err
}

package main

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path"
	"sort"
	"unicode/utf8"
)

// No change may have a longer path; a directory that has is named and not looked into.
const maxPathBytes = 2048

// leaf is one line of a listing. Names that are no UTF-8 hold U+FFFD; they are named and not looked into.
type leaf struct {
	Path   string `json:"path"`
	Kind   string `json:"kind"` // file, symlink, directory, special, unread
	Mode   uint32 `json:"mode,omitempty"`
	Size   int64  `json:"size,omitempty"`
	Target string `json:"target,omitempty"`
	Sha256 string `json:"sha256,omitempty"`
}

// list writes a line for everything below a directory, sorted within each, with digests. It ends with an `unread` one
// when there is more to be read than it may.
func list(asked request, to io.Writer) result {
	top, why, err := openDirectory(asked.Directory, -1)
	if err != nil {
		return result{Error: err.Error()}
	}
	if why != "" {
		return result{Missing: why}
	}
	defer top.Close()
	left := asked.MaxBytes
	lines := json.NewEncoder(to)
	lines.SetEscapeHTML(false)
	_, err = walk(top, "", func(directory *os.Root, name string, at string, found fs.FileInfo) (bool, error) {
		one := leaf{Path: at, Mode: uint32(found.Mode().Perm()), Size: found.Size()}
		one.Kind = kindOf(found.Mode())
		var err error
		switch {
		case one.Kind == "file" && found.Size() > left:
			one.Kind = "unread"
		case one.Kind == "file":
			left -= found.Size()
			one.Sha256, err = digestOf(directory, name)
		case one.Kind == "symlink":
			one.Target, err = directory.Readlink(name)
			sum := sha256.Sum256([]byte(one.Target))
			one.Sha256 = hex.EncodeToString(sum[:])
		}
		if err != nil {
			return false, err
		}
		return one.Kind != "unread", lines.Encode(one)
	})
	return failed(err)
}

// pack writes regular files, links and directories below a directory as an archive, or only the files named. Nothing
// is read when there is more of it than allowed.
func pack(asked request, to io.Writer) result {
	top, why, err := openDirectory(asked.Directory, -1)
	if err != nil {
		return result{Error: err.Error()}
	}
	if why != "" {
		return result{Missing: why}
	}
	defer top.Close()
	wanted := map[string]bool{}
	for _, name := range asked.Names {
		wanted[name] = true
	}
	isWanted := func(at string) bool { return len(wanted) == 0 || wanted[at] }
	leftBytes, leftMembers := asked.MaxBytes, asked.MaxMembers
	_, err = walk(top, "", func(_ *os.Root, _ string, at string, found fs.FileInfo) (bool, error) {
		if !isWanted(at) {
			return true, nil
		}
		leftMembers--
		if found.Mode().IsRegular() {
			leftBytes -= found.Size()
		}
		return leftMembers >= 0 && leftBytes >= 0, nil
	})
	if err != nil {
		return result{Error: err.Error()}
	}
	if leftMembers < 0 || leftBytes < 0 {
		return result{Error: asked.Directory + " holds too much to be packed"}
	}
	archive := tar.NewWriter(to)
	_, err = walk(top, "", func(directory *os.Root, name string, at string, found fs.FileInfo) (bool, error) {
		if !isWanted(at) || !utf8.ValidString(at) || len(at) > maxPathBytes {
			return true, nil
		}
		return true, packOne(archive, directory, name, at, found)
	})
	if err == nil {
		err = archive.Close()
	}
	return failed(err)
}

func packOne(archive *tar.Writer, directory *os.Root, name string, at string, found fs.FileInfo) error {
	header := &tar.Header{Name: at, Mode: int64(found.Mode().Perm()), Format: tar.FormatPAX}
	switch kindOf(found.Mode()) {
	case "directory":
		header.Typeflag = tar.TypeDir
		return archive.WriteHeader(header)
	case "symlink":
		target, err := directory.Readlink(name)
		if err != nil {
			return err
		}
		header.Typeflag, header.Linkname = tar.TypeSymlink, target
		return archive.WriteHeader(header)
	case "file":
		header.Typeflag, header.Size = tar.TypeReg, found.Size()
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		file, err := directory.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		_, err = io.Copy(archive, file)
		return err
	}
	return nil
}

// walk looks at everything below a directory through descriptors, so that no path is too long and no link leads
// anywhere. It ends when `visit` says false.
func walk(top *os.Root, prefix string, visit func(*os.Root, string, string, fs.FileInfo) (bool, error)) (bool, error) {
	directory, err := top.Open(".")
	if err != nil {
		return false, err
	}
	names, err := directory.Readdirnames(-1)
	directory.Close()
	if err != nil {
		return false, err
	}
	sort.Strings(names)
	for _, name := range names {
		at := path.Join(prefix, name)
		found, err := top.Lstat(name)
		if err != nil {
			return false, err
		}
		if goesOn, err := visit(top, name, at, found); err != nil || !goesOn {
			return goesOn, err
		}
		if !found.IsDir() || !utf8.ValidString(at) || len(at) > maxPathBytes {
			continue
		}
		below, err := top.OpenRoot(name)
		if err != nil {
			return false, err
		}
		goesOn, err := walk(below, at, visit)
		below.Close()
		if err != nil || !goesOn {
			return goesOn, err
		}
	}
	return true, nil
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "file"
	case mode&fs.ModeSymlink != 0:
		return "symlink"
	case mode.IsDir():
		return "directory"
	}
	return "special"
}

func digestOf(directory *os.Root, name string) (string, error) {
	file, err := directory.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

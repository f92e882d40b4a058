package health

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// location says where the files of this process's cgroup and its ancestors lie. It is comparable by key: the same key
// means the same cgroups.
type location struct {
	key string
	v2  bool
	// dirs lists the directories with the limits, from our own cgroup to the topmost that can be seen. acct lists those with
	// the CPU time (the same under v2; often another hierarchy under v1).
	dirs, acct []place
}

// place is one cgroup: its path in the hierarchy and the directory (relative to the root of the file system) of its files.
type place struct{ cgroup, dir string }

// maxText bounds the two text files in /proc that have no bound of their own; hosts with thousands of mounts stay below.
const maxText = 4 << 20

// hierarchies says in which cgroup this process is, by controller, and where they are mounted.
type hierarchies struct {
	members map[string]string
	mounts  []mount
}

// survey reads /proc/self/cgroup (which cgroup) and /proc/self/mountinfo (where it is mounted).
func survey(fsys fs.FS) (hierarchies, error) {
	text, err := readAll(fsys, "proc/self/cgroup")
	if err != nil {
		return hierarchies{}, err
	}
	members, err := parseMembership(text)
	if err != nil {
		return hierarchies{}, err
	}
	if text, err = readAll(fsys, "proc/self/mountinfo"); err != nil {
		return hierarchies{}, err
	}
	mounts, err := parseMounts(text)
	return hierarchies{members, mounts}, err
}

// of is where the named controller acts on us. Without any cgroup that could have it the location is zero. A hybrid host
// mounts both versions; the controller lives in one of them: where a v1 hierarchy has it, v2 has not.
func (h hierarchies) of(controller string) location {
	if cgroup, ok := h.members[controller]; ok {
		if dirs := places(h.mounts, controller, cgroup); dirs != nil {
			acct := places(h.mounts, "cpuacct", h.members["cpuacct"])
			return location{key: "cgroup v1 " + dirs[0].dir, dirs: dirs, acct: acct}
		}
	}
	return h.unified()
}

// unified is where v2 is, whatever its controllers; zero without it.
func (h hierarchies) unified() location {
	if cgroup, ok := h.members[""]; ok {
		if dirs := places(h.mounts, "", cgroup); dirs != nil {
			return location{key: "cgroup v2 " + dirs[0].dir, v2: true, dirs: dirs, acct: dirs}
		}
	}
	return location{}
}

// parseMembership reads lines `ID:CONTROLLER,CONTROLLER:PATH` into a path for each controller; v2's has no name.
func parseMembership(text []byte) (map[string]string, error) {
	members := make(map[string]string)
	for line := range bytes.Lines(text) {
		_, rest, ok1 := strings.Cut(strings.TrimSuffix(string(line), "\n"), ":")
		controllers, cgroup, ok2 := strings.Cut(rest, ":")
		if !ok1 || !ok2 || !strings.HasPrefix(cgroup, "/") {
			return nil, malformed("/proc/self/cgroup: %.40q is not ID:CONTROLLERS:PATH", line)
		}
		for c := range strings.SplitSeq(controllers, ",") {
			members[c] = cgroup
		}
	}
	return members, nil
}

// mount is one mounted hierarchy: root is the cgroup that shows up at the mount point.
type mount struct {
	point, root string
	controllers []string // {""} for v2
}

// parseMounts picks the cgroup hierarchies out of lines
// `ID PARENT DEV ROOT POINT OPTIONS [OPTIONAL...] - TYPE SOURCE SUPEROPTIONS`.
func parseMounts(text []byte) ([]mount, error) {
	var mounts []mount
	for line := range bytes.Lines(text) {
		left, right, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), " - ")
		fields, super := strings.Fields(left), strings.Fields(right)
		if !ok || len(fields) < 6 || len(super) < 2 {
			return nil, malformed("/proc/self/mountinfo: %.40q is not a mount", line)
		}
		m := mount{root: unescape(fields[3]), point: unescape(fields[4])}
		switch {
		case super[0] == "cgroup2":
			m.controllers = []string{""}
		case super[0] == "cgroup" && len(super) > 2:
			m.controllers = strings.Split(super[2], ",")
		default:
			continue
		}
		mounts = append(mounts, m)
	}
	return mounts, nil
}

// unescape undoes the kernel's \040 (space), \011, \012 and \134 in mount paths.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// places are the directories of cgroup and its ancestors, as far as a mount of the controller shows them; nil without
// such a mount.
func places(mounts []mount, controller, cgroup string) []place {
	best, below := -1, ""
	for i, m := range mounts {
		if !slices.Contains(m.controllers, controller) {
			continue
		}
		rel, under := relative(m.root, cgroup)
		if under {
			best, below = i, rel
			break
		}
		if best < 0 {
			// In a container the mount usually shows our own cgroup as its root, whatever path /proc names: a path that does
			// not lie below the root, or leads out of our namespace, was written for somebody else's eyes.
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	m := mounts[best]
	var all []place
	for p := path.Join("/", below); ; p = path.Dir(p) {
		dir := strings.TrimPrefix(path.Join(m.point, p), "/")
		all = append(all, place{cgroup: path.Join("/", m.root, p), dir: dir})
		if p == "/" {
			return all
		}
	}
}

// relative is cgroup as seen from a mount whose root is root, and whether it can be seen from there.
func relative(root, cgroup string) (string, bool) {
	rel, ok := strings.CutPrefix(cgroup, strings.TrimSuffix(root, "/"))
	if !ok || rel != "" && rel[0] != '/' || strings.HasPrefix(rel, "/..") {
		return "", false
	}
	return rel, true
}

// readAll is fs.ReadFile with a bound.
func readAll(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err != nil {
		return nil, fmt.Errorf("read /%s: %w", name, err)
	}
	if len(text) > maxText {
		return nil, malformed("/%s is longer than %d bytes", name, maxText)
	}
	return text, nil
}

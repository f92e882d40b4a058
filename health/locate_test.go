package health

import "testing"

func TestAPathIsSeenFromAMountOnlyBelowItsRoot(t *testing.T) {
	for _, tc := range []struct {
		root, cgroup, want string
		seen               bool
	}{
		{"/", "/", "/", true},
		{"/", "/a/b", "/a/b", true},
		{"/a", "/a", "", true},
		{"/a", "/a/b", "/b", true},
		{"/a", "/ab", "", false}, // another cgroup that begins alike
		{"/a", "/b", "", false},
		{"/a/b", "/a", "", false},
		{"/", "/../a", "", false}, // outside of our namespace; /a is somebody else
		{"/..", "/../a", "/a", true},
		{"/..", "/../../a", "", false},
	} {
		if got, seen := relative(tc.root, tc.cgroup); got != tc.want || seen != tc.seen {
			t.Errorf("relative(%q, %q) = %q, %v, want %q, %v", tc.root, tc.cgroup, got, seen, tc.want, tc.seen)
		}
	}
}

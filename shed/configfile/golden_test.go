package configfile

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spillway-go/spillway/shed"
)

var update = flag.Bool("update", false, "write the golden files anew; read the difference before committing it")

// golden compares got with the file, which -update writes.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", file, diff)
	}
}

// each runs a test for every YAML file in a folder of testdata.
func each(t *testing.T, folder string, run func(t *testing.T, file string, data []byte)) {
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", folder, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			run(t, file, data)
		})
	}
}

// oneLine is what every line of an error looks like.
var oneLine = regexp.MustCompile(`^[^:]*(:[1-9][0-9]*){0,2}: [^;]+(; [^;]+|: [^;]+)$`)

func TestEveryMistakeIsReportedWithItsLineAndItsWayOut(t *testing.T) {
	each(t, "bad", func(t *testing.T, file string, data []byte) {
		c, err := Parse(filepath.Base(file), data, Config{})
		if err == nil {
			t.Fatalf("accepted: %+v", c)
		}
		if c != nil {
			t.Error("there is a configuration beside the error")
		}
		for line := range strings.Lines(err.Error()) {
			if line = strings.TrimSuffix(line, "\n"); !oneLine.MatchString(line) {
				t.Errorf("not of the form PATH:LINE:COLUMN: what; how to mend: %q", line)
			}
		}
		golden(t, strings.TrimSuffix(file, ".yaml")+".txt", err.Error()+"\n")
	})
}

func TestGoodFilesAreReadAndSatisfyTheSchema(t *testing.T) {
	each(t, "good", func(t *testing.T, file string, data []byte) {
		c, err := Parse(file, data, forwarding())
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Warnings) > 0 && filepath.Base(file) != "everything.yaml" {
			t.Errorf("warned of: %q", c.Warnings)
		}
		s, err := shed.New(c.Shed)
		if err != nil {
			t.Fatalf("shed.New refuses what Parse accepts: %v", err)
		}
		s.Close()
		for _, fault := range schemaFaults(t, data) {
			t.Errorf("the schema refuses what Parse accepts: %s", fault)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/chart/v2/util"
)

// pack writes plumbline-<version>.tgz. SOURCE_DATE_EPOCH is the time of its files.
func pack(out io.Writer, o options) error {
	c, err := loader.Load(o.chart)
	if err != nil {
		return err
	}
	c.Metadata.Version, c.Metadata.AppVersion = strings.TrimPrefix(o.version, "v"), o.version
	if o.digests != "" {
		lines, err := os.ReadFile(o.digests)
		if err != nil {
			return err
		}
		if err := pin(c, string(lines)); err != nil {
			return fmt.Errorf("%s: %w", o.digests, err)
		}
	}
	epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	setTime(c, time.Unix(epoch, 0).UTC())
	file, err := util.Save(c, o.out)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, file)
	return err
}

// pin writes the images of a release into values.yaml, whose comments stay.
func pin(c *chart.Chart, lines string) error {
	images := regexp.MustCompile(`(?m)^([0-9a-f]{64})\s+(\S+)/(receiver|controller)$`).FindAllStringSubmatch(lines, -1)
	if len(images) != 2 || images[0][2] != images[1][2] || images[0][3] == images[1][3] {
		return fmt.Errorf("want a receiver and a controller of one registry, got %q", lines)
	}
	var replacements []string
	for _, image := range images {
		line := "\n    " + image[3] + `: ""`
		replacements = append(replacements, line, strings.TrimSuffix(line, `""`)+"sha256:"+image[1])
	}
	registry := "\n  registry: " + c.Values["image"].(map[string]any)["registry"].(string)
	replacements = append(replacements, registry, "\n  registry: "+images[0][2])
	for _, file := range c.Raw {
		if file.Name == util.ValuesfileName {
			file.Data = []byte(strings.NewReplacer(replacements...).Replace(string(file.Data)))
		}
	}
	return nil
}

func setTime(c *chart.Chart, at time.Time) {
	c.ModTime, c.SchemaModTime = at, at
	for _, file := range c.Raw {
		file.ModTime = at
	}
	for _, file := range c.Templates {
		file.ModTime = at
	}
	for _, file := range c.Files {
		file.ModTime = at
	}
}

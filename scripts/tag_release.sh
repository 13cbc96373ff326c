#!/usr/bin/env bash
# Puts a commit that pins action.yml on top of the checked-out tag, and moves the tag and that of its major version there.
# usage: tag_release.sh vX.Y.Z IMAGE@DIGEST
set -euo pipefail

tag=$1 image=$2
[[ $tag =~ ^v([0-9]+)\.[0-9]+\.[0-9]+$ ]] || { echo "tag_release.sh: $tag is not of the form vX.Y.Z" >&2; exit 2; }
major=v${BASH_REMATCH[1]}

python3 "$(dirname "${BASH_SOURCE[0]}")/pin_image.py" action.yml "$image"
git -c user.name='github-actions[bot]' -c user.email='41898282+github-actions[bot]@users.noreply.github.com' \
    commit --quiet --message "Run the image of $tag" -- action.yml
git tag --force --no-sign "$tag" HEAD >/dev/null
git tag --force --no-sign "$major" HEAD >/dev/null
# Both or none.
git push --quiet --atomic --force origin "refs/tags/$tag" "refs/tags/$major"

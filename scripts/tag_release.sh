#!/usr/bin/env bash
# Puts a commit on top of the checked-out tag that pins action.yml to the image and native/action.yml to the wheel in dist/,
# and moves the tag there. The tag of the major version moves too, unless it has a newer release. Repeated with the same
# image and wheel, it makes the same commit and changes nothing.
# usage: tag_release.sh vX.Y.Z IMAGE@DIGEST
set -euo pipefail

fail() { echo "tag_release.sh: $1" >&2; exit 2; }

tag=$1 image=$2
[[ $tag =~ ^v([0-9]+)\.[0-9]+\.[0-9]+$ ]] || fail "$tag is not of the form vX.Y.Z"
number=${BASH_REMATCH[1]}
# Workflows name v1 from the first release on, which is a 0.*.
major=v${number/#0/1}
released=$(git rev-parse HEAD)

published=$(git ls-remote origin "refs/tags/$tag" | cut -f1)
if [[ -n $published ]]; then
  git fetch --quiet --no-tags --depth=2 origin "$published"
  if [[ $(git rev-parse "$published^{commit}") != "$released" ]]; then
    # An earlier attempt of this script has moved it to a commit on top, which changes these files alone.
    [[ $(git rev-parse --quiet --verify "$published^{commit}^") == "$released" ]] &&
      git diff --quiet "$released" "$published^{commit}" -- . ':!action.yml' ':!native/release.lock' ||
      fail "$tag of origin is another commit than the checkout; check out that commit, or release another version"
  fi
fi
newest=$({ git ls-remote --refs origin "refs/tags/$major.*" "refs/tags/v$number.*" | sed 's|.*refs/tags/||'; echo "$tag"; } |
  grep --extended-regexp '^v[0-9]+\.[0-9]+\.[0-9]+$' | sort --version-sort | tail -n 1)
moved=("refs/tags/$tag")
[[ $newest != "$tag" ]] || moved+=("+refs/tags/$major")

shopt -s nullglob
wheels=(dist/*.whl)
[[ ${#wheels[@]} == 1 ]] || fail "dist/ contains ${#wheels[@]} wheels; one is needed"
python3 "$(dirname "${BASH_SOURCE[0]}")/pin_image.py" action.yml "$image"
echo "agenteval-action==${tag#v} --hash=sha256:$(sha256sum "${wheels[0]}" | cut -d' ' -f1)" >native/release.lock
git add native/release.lock
# The date of the released commit, so that a repetition makes the same commit.
date=$(git log -1 --format=%cI)
GIT_AUTHOR_DATE=$date GIT_COMMITTER_DATE=$date \
  git -c user.name='github-actions[bot]' -c user.email='41898282+github-actions[bot]@users.noreply.github.com' \
  -c commit.gpgSign=false commit --quiet --message "Run the image and the wheel of $tag" -- action.yml native/release.lock
for ref in "${moved[@]}"; do git update-ref "${ref#+}" HEAD; done
# All or none; and only if nobody has moved the tag since.
git push --quiet --atomic "--force-with-lease=refs/tags/$tag:$published" origin "${moved[@]}"

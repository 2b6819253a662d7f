/**
 * Owns the shell around a Harbor verifier: it runs the script as it is, and tells what the script's end left. Nothing of
 * it is known to the script but that it is there. Does not read rewards.
 *
 * W1  The nonce is read before the script starts; the script's own input is empty.
 * W2  A reward that is written again after the script ended was not written by it: with processes left over, the files
 *     are looked at twice.
 * W3  What stands in a reward's place and is no plain file, and a directory nobody can write to, keep a verifier from
 *     writing: what is graded made them.
 */
export const REWARD_DIRECTORY = "/logs/verifier";
/** Where the wrapper keeps what only it needs. */
export const WATCH_DIRECTORY = "/mortise-watch";
const LOOK_AGAIN_SECONDS = 0.4;

/** For `sh -c`; the parameters are the command. The last line of standard error is the record, with the nonce. */
export const WRAPPER = `
IFS= read -r nonce
"$@" < /dev/null
code=$?
left=0
for entry in /proc/[0-9]*; do
  id=\${entry#/proc/}
  [ "$id" = "$$" ] && continue
  name=
  IFS= read -r name 2> /dev/null < "$entry/cmdline"
  [ -n "$name" ] && left=$((left + 1))
done
late=false
if [ "$left" -gt 0 ]; then
  : > ${WATCH_DIRECTORY}/end
  sleep ${LOOK_AGAIN_SECONDS} 2> /dev/null
  for file in ${REWARD_DIRECTORY}/reward.txt ${REWARD_DIRECTORY}/reward.json; do
    [ "$file" -nt ${WATCH_DIRECTORY}/end ] && late=true
  done
fi
blocked=
[ -L ${REWARD_DIRECTORY} ] || [ ! -d ${REWARD_DIRECTORY} ] || [ ! -w ${REWARD_DIRECTORY} ] && blocked=${REWARD_DIRECTORY}
for file in ${REWARD_DIRECTORY}/reward.txt ${REWARD_DIRECTORY}/reward.json; do
  if [ -L "$file" ] || { [ -e "$file" ] && { [ ! -f "$file" ] || [ ! -w "$file" ]; }; }; then blocked=$file; fi
done
printf '\\n{"nonce":"%s","code":%d,"left":%d,"late":%s,"blocked":"%s"}\\n' "$nonce" "$code" "$left" "$late" "$blocked" >&2
exit "$code"
`;

//! What the programs are given to do that are several processes: shell scripts, whose processes are all recorded.
//!
//! A script prints what is the same in every run.

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use super::job::{repository, words};
use crate::scratch::Scratch;
use crate::tool;

/// `sh job.sh`.
fn script(scratch: &Scratch, text: &str) -> Option<Vec<String>> {
    scratch.write("job.sh", text);
    Some(words(tool::system("sh")?, ["job.sh"]))
}

pub(super) fn bash(scratch: &Scratch) -> Option<Vec<String>> {
    let text = "\
declare -A count
for i in $(seq 1 300); do
  key=k$((i % 17)); count[$key]=$(( ${count[$key]:-0} + i )); list+=(\"$key=${count[$key]}\")
done
sorted=$(printf '%s\\n' \"${list[@]}\" | sort -t= -k2,2n | tail -n 5)
while IFS== read -r key value; do [[ $key =~ ^k([0-9]+)$ ]] && echo \"${BASH_REMATCH[1]} $value\"; done <<< \"$sorted\"
( cd / && pwd ) & wait $!
text=${list[*]}; text=${text//k/j}; echo \"${#text} ${text:0:20}\"
diff <(echo a; echo b) <(echo b; echo a) | wc -l
exit 3
";
    scratch.write("job.bash", text);
    Some(words(tool::system("bash")?, ["job.bash"]))
}

pub(super) fn git_gc(scratch: &Scratch) -> Option<Vec<String>> {
    let git = repository(scratch)?;
    let git = git.display();
    let text = format!(
        "rm -rf copy && cp -r repository copy && {git} -C copy gc --quiet && {git} -C copy fsck --no-progress && \
         {git} -C copy rev-list --count --all && {git} -C copy count-objects -v | grep -E '^(count|in-pack|packs)'\n"
    );
    script(scratch, &text)
}

pub(super) fn cmake(scratch: &Scratch) -> Option<Vec<String>> {
    scratch.shell("mkdir -p project");
    scratch.write(
        "project/CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.18)\nproject(job C)\ninclude(CheckIncludeFile)\n\
         check_include_file(stdlib.h HAVE_STDLIB)\nadd_executable(job job.c)\n",
    );
    scratch.write("project/job.c", "int main(void) { return 0; }\n");
    script(scratch, "rm -rf build; cmake -S project -B build | sed '/(.*s)$/d'\n")
}

/// As `postgres` where this is root: it refuses to run as root.
pub(super) fn initdb(scratch: &Scratch) -> Option<Vec<String>> {
    let initdb = postgres()?;
    script(scratch, &format!("rm -rf data; {} -D data -N -A trust | grep -c ok; exit $?\n", initdb.display()))
}

/// Debian has a folder for each version.
fn postgres() -> Option<PathBuf> {
    let versions = Path::new("/usr/lib/postgresql").read_dir().ok()?;
    let mut found: Vec<PathBuf> = versions
        .filter_map(Result::ok)
        .map(|version| version.path().join("bin/initdb"))
        .filter(|path| path.is_file())
        .collect();
    found.sort();
    found.pop()
}

/// Two workers; 1,000 requests.
pub(super) fn nginx(scratch: &Scratch) -> Option<Vec<String>> {
    let port = TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?.port();
    let folder = scratch.path("server");
    let folder = folder.display();
    scratch.shell("mkdir -p server/html && echo hello > server/html/index.html");
    let user = if tool::is_root() { "user root;" } else { "" };
    let mut config = format!(
        "daemon off; {user} worker_processes 2; pid {folder}/pid; error_log {folder}/errors;\n\
         events {{ worker_connections 64; }}\nhttp {{ access_log {folder}/access;"
    );
    for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        config.push_str(&format!(" {kind}_temp_path {folder}/{kind};"));
    }
    config.push_str(&format!(" server {{ listen 127.0.0.1:{port}; root {folder}/html; }} }}\n"));
    scratch.write("server/nginx.conf", config);
    let text = format!(
        "nginx -p {folder} -c {folder}/nginx.conf & server=$!\n\
         for i in $(seq 100); do curl -sf http://127.0.0.1:{port}/ && break; sleep 0.2; done\n\
         ab -q -n 1000 -c 8 http://127.0.0.1:{port}/ | grep -E 'Complete|Failed|Non-2xx'\n\
         kill -QUIT $server; wait $server; echo $?; wc -l < {folder}/access; rm {folder}/access\n"
    );
    script(scratch, &text)
}

/// A server with an allocator of its own, which is a library.
pub(super) fn redis(scratch: &Scratch) -> Option<Vec<String>> {
    let text = "\
redis-server --port 0 --unixsocket $PWD/socket --save '' --appendonly no --loglevel warning > log 2>&1 & server=$!
for i in $(seq 100); do redis-cli -s socket ping 2>&1 | grep -x PONG && break; sleep 0.2; done
redis-benchmark -s socket -n 2000 -c 10 -q -t set,get,lpush,zadd > rates; echo $?
redis-cli -s socket dbsize
redis-cli -s socket shutdown nosave; wait $server; echo $?
";
    script(scratch, text)
}

/// A window, and the theme's settings, on a screen in memory.
pub(super) fn gtk(scratch: &Scratch) -> Option<Vec<String>> {
    let object = |class: &str, properties: &str, children: &str| {
        format!("<object class=\"Gtk{class}\">{properties}{children}</object>")
    };
    let label = |text: &str| format!("<property name=\"label\">{text}</property>");
    let child = |object: &str| format!("<child>{object}</child>");
    let parts: String = [
        object("Label", &label("hello"), ""),
        object("Button", &label("press"), ""),
        object("Entry", "", ""),
        object("TextView", "", ""),
    ]
    .iter()
    .map(|part| child(part))
    .collect();
    let window = object("Window", "", &child(&object("Box", "", &parts)));
    scratch.write("job.ui", format!("<?xml version=\"1.0\"?>\n<interface>{window}</interface>\n"));
    let text = "\
export NO_AT_BRIDGE=1 GTK_A11Y=none
rm -f display; Xvfb -displayfd 3 -screen 0 640x480x24 -nolisten tcp 3> display 2> log & server=$!
for i in $(seq 100); do [ -s display ] && break; sleep 0.2; done
export DISPLAY=:$(cat display)
timeout 4 gtk-builder-tool preview job.ui; echo $?
gtk-query-settings | grep -c :
kill $server; wait $server; echo $?
";
    script(scratch, text)
}

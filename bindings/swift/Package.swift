// swift-tools-version: 6.0
import PackageDescription

let package = Package(
    name: "HeaptallyWindows",
    products: [.library(name: "HeaptallyWindows", targets: ["HeaptallyWindows"])],
    targets: [
        .systemLibrary(name: "CHeaptally"),
        .target(name: "HeaptallyWindows", dependencies: ["CHeaptally"]),
    ]
)

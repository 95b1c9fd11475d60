import java.nio.file.*;
import java.util.*;
import javax.swing.table.DefaultTableModel;
import javax.swing.tree.*;
import org.jacorb.ir.gui.typesystem.*;
import org.jacorb.ir.gui.typesystem.remote.RemoteTypeSystem;
import org.omg.CORBA.*;

/**
 * IrBrowser --ior PATH [--seconds S]: what the window of JacORB's interface repository browser shows of the repository whose
 * reference is in PATH, as text: each node of its tree with its description, and the table of what is in it.
 * IrBrowser --object PATH [--seconds S]: what the object says of its interface, and a call that is made by that alone.
 * Status 0: all was shown.
 */
public final class IrBrowser {
    private final RemoteTypeSystem types;
    private final DefaultTreeModel tree;
    private final Set<java.lang.Object> shown = Collections.newSetFromMap(new IdentityHashMap<>());

    private IrBrowser(String ior) {
        types = new RemoteTypeSystem(ior);
        tree = types.createTreeModelRoot();
    }

    private void show(DefaultMutableTreeNode at, int depth) {
        TypeSystemNode node = (TypeSystemNode) at.getUserObject();
        String indent = "  ".repeat(depth);
        String about = node.description().replaceAll("\t *", " ").replaceAll("\nVersion: *\nRepository ID: *(\n|$)", "$1");
        System.out.println(indent + about.trim().replace("\n", "; "));
        // What stands in two places has its children in one of them.
        if (!(node instanceof AbstractContainer) || !shown.add(node)) return;
        node.expand(tree);
        DefaultMutableTreeNode opened = (DefaultMutableTreeNode) node.getModelRepresentant(tree);
        DefaultTableModel table = types.getTableModel(opened);
        for (int i = 0; i < table.getRowCount(); i++) {
            StringBuilder row = new StringBuilder();
            for (int column = 0; column < table.getColumnCount(); column++)
                row.append(" | ").append(table.getValueAt(i, column));
            System.out.println(indent + row);
        }
        for (int i = 0; i < opened.getChildCount(); i++) show((DefaultMutableTreeNode) opened.getChildAt(i), depth + 1);
    }

    private static void call(ORB orb, String ior) throws Exception {
        org.omg.CORBA.Object object = orb.string_to_object(ior);
        InterfaceDef definition = InterfaceDefHelper.narrow(object._get_interface_def());
        org.omg.CORBA.InterfaceDefPackage.FullInterfaceDescription full = definition.describe_interface();
        System.out.println("interface " + full.id + " of " + full.defined_in + ", " + full.version + ", " + full.type.kind().value());
        System.out.println("bases " + String.join(" ", full.base_interfaces));
        for (AttributeDescription attribute : full.attributes)
            System.out.println("attribute " + attribute.id + " " + attribute.mode.value() + " " + attribute.type.kind().value());
        for (OperationDescription operation : full.operations) {
            StringBuilder line = new StringBuilder("operation " + operation.id + " " + operation.result.kind().value() + " (");
            for (ParameterDescription one : operation.parameters)
                line.append(" ").append(one.mode.value()).append(" ").append(one.name).append(" ").append(one.type.kind().value());
            line.append(" ) raises");
            for (ExceptionDescription one : operation.exceptions) line.append(" ").append(one.id);
            System.out.println(line);
            // What gives a double for a double is called.
            if (operation.parameters.length == 1 && operation.result.kind() == TCKind.tk_double) {
                Request request = object._request(operation.name);
                ParameterDescription only = operation.parameters[0];
                request.add_named_in_arg(only.name).insert_double(2.5);
                request.set_return_type(operation.result);
                request.invoke();
                if (request.env().exception() != null) throw request.env().exception();
                System.out.println(operation.name + " gives " + request.return_value().extract_double());
            }
        }
    }

    public static void main(String[] args) throws Exception {
        // The browser makes an ORB of its own.
        System.setProperty("org.omg.CORBA.ORBClass", "org.jacorb.orb.ORB");
        System.setProperty("org.omg.CORBA.ORBSingletonClass", "org.jacorb.orb.ORBSingleton");
        System.setProperty("jacorb.connection.client.pending_reply_timeout", "30000");
        System.setProperty("java.awt.headless", "true");
        Options options = new Options(args);
        options.exitAfter("60");
        java.util.logging.LogManager.getLogManager().reset();
        String path = options.get("--ior", null);
        if (path != null) {
            IrBrowser browser = new IrBrowser(Files.readString(Path.of(path)).trim());
            browser.show((DefaultMutableTreeNode) browser.tree.getRoot(), 0);
        } else {
            call(options.peerOrb("UTF-8"), Files.readString(Path.of(options.get("--object", ""))).trim());
        }
        System.out.println("SHOWN");
        System.exit(0);
    }
}
